"""`python -m tests.frameworks [ARGUMENT ...]`: the types of the adapters, and the tests of this folder with
the frameworks' own Python, and those of Hermes Agent with its own.

Runs all tests marked `framework`, unless the arguments for pytest say otherwise.
"""

from __future__ import annotations

import subprocess
import sys

from tests.frameworks.environment import ROOT, command, python, variables
from tests.frameworks.hermes import environment as hermes
from tests.frameworks.hermes.__main__ import main as hermes_main

TYPES = ("-m", "mypy", "--config-file", "tests/frameworks/mypy.ini", "--python-executable")


def main() -> int:
    """Return the exit code of the first check that fails; 0 if none does."""
    program = python()
    if program is not None:
        types = subprocess.run((sys.executable, *TYPES, str(program)), cwd=ROOT).returncode
        if types != 0:
            return types
    tests = subprocess.run(command(*sys.argv[1:]), cwd=ROOT, env=variables()).returncode
    if tests != 0 or hermes.python() is None:
        return tests
    return hermes_main()


if __name__ == "__main__":
    sys.exit(main())
