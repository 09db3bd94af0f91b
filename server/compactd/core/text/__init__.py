"""Text handling: words, sentences, quoting, invisible characters, and the format of summaries."""
