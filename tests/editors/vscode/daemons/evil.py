"""A program that a workspace would have run: it leaves a file where its first argument says."""

import sys
from pathlib import Path

Path(sys.argv[1]).touch()
