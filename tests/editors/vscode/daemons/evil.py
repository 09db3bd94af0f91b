"""A program that a hostile workspace wants to run: it creates the file that its first argument names."""

import sys
from pathlib import Path

Path(sys.argv[1]).touch()
