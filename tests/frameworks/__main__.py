"""`python -m tests.frameworks [ARGUMENT ...]`: the tests of this folder with the frameworks' own Python.

Runs all tests marked `framework`, unless the arguments for pytest say otherwise.
"""

from __future__ import annotations

import subprocess
import sys

from tests.frameworks.environment import ROOT, command, variables

if __name__ == "__main__":
    sys.exit(subprocess.run(command(*sys.argv[1:]), cwd=ROOT, env=variables()).returncode)
