"""Black-box tests: they start the daemon and speak bytes. Nothing here imports our code."""
