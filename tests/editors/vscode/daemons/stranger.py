"""A language server of somebody else."""

from speaking import agree, introduce

introduce("other-server", "9", None)
agree()
