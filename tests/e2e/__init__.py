"""Black-box tests: they start the daemon and send bytes. They import no code of compactd."""
