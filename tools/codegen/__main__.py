"""`python -m tools.codegen`: updates the generated files of this checkout, or lists the stale ones."""

from __future__ import annotations

import argparse
import sys

from tools.codegen import COMMAND, ROOT, stale_files


def main() -> int:
    """Write or list the stale files. Return the exit code: 1 if `--check` found a stale file."""
    parser = argparse.ArgumentParser(prog="python -m tools.codegen", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="update the generated files of this checkout")
    action.add_argument(
        "--check", action="store_true", help="list the stale generated files; exit code 1 if there are any"
    )
    is_written: bool = parser.parse_args().write
    stale = tuple(stale_files())
    for file in stale:
        if is_written:
            (ROOT / file.name).write_text(file.wanted, "utf-8")
            print(f"written: {file.name}")
        else:
            print(f"stale: {file.name} (update it with: {COMMAND})")
    return 1 if stale and not is_written else 0


if __name__ == "__main__":
    sys.exit(main())
