"""Text: words, sentences, quoting, invisible characters, the format of summaries."""
