"""`python -m tests.frameworks [ARGUMENT ...]`: the types of the adapters, and the tests of this folder with
the frameworks' own Python.

Runs all tests marked `framework`, unless the arguments for pytest say otherwise.
"""

from __future__ import annotations

import subprocess
import sys

from tests.frameworks.environment import ROOT, command, python, variables

TYPES = ("-m", "mypy", "--config-file", "tests/frameworks/mypy.ini", "--python-executable")


def main() -> int:
    """Return the exit code of the first check that fails; 0 if none does."""
    program = python()
    if program is not None:
        types = subprocess.run((sys.executable, *TYPES, str(program)), cwd=ROOT).returncode
        if types != 0:
            return types
    return subprocess.run(command(*sys.argv[1:]), cwd=ROOT, env=variables()).returncode


if __name__ == "__main__":
    sys.exit(main())
