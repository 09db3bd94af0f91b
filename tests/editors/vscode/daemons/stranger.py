"""A language server that is not compactd."""

from speaking import agree, introduce

introduce("other-server", "9", None)
agree()
