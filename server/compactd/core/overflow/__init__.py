"""Is a failed request an overflow of the context window, and what does the error say about the window?"""
