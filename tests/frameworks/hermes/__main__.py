"""`python -m tests.frameworks.hermes [ARGUMENT ...]`: the types of the adapter, and the tests of this folder
with Hermes' own Python. The arguments are pytest's.
"""

from __future__ import annotations

import subprocess
import sys

from tests.frameworks.environment import ROOT, variables
from tests.frameworks.hermes.environment import command, python

TYPES = ("-m", "mypy", "--config-file", "tests/frameworks/hermes/mypy.ini", "--python-executable")


def main() -> int:
    """Return the exit code of the first check that fails; 0 if none does."""
    program = python()
    if program is None:
        print("Hermes Agent is not installed: run tests/frameworks/hermes/setup.sh", file=sys.stderr)
        return 1
    types = subprocess.run((sys.executable, *TYPES, str(program)), cwd=ROOT).returncode
    if types != 0:
        return types
    return subprocess.run(command(*sys.argv[1:]), cwd=ROOT, env=variables()).returncode


if __name__ == "__main__":
    sys.exit(main())
