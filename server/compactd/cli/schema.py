"""`compactd schema`: the protocol for programs, or the files of a checkout brought up to date."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from compactd.cli.ending import DONE, FAILED, Stop
from compactd.cli.page import Page
from compactd.rpc.schema import COMMAND, KINDS, is_checkout, stale_files

ABOUT = """\
The protocol, generated from the daemon's own table of methods: `json` (JSON Schema
2020-12), `openrpc`, `typescript`, `lua` (LuaLS annotations), `elisp`, `python`.
"""

CHECKOUT = Path(__file__).parents[3]


def fill(parser: argparse.ArgumentParser) -> None:
    """Which language, or the files of a checkout."""
    parser.description = ABOUT
    parser.add_argument("kind", nargs="?", choices=tuple(KINDS), default="json", metavar="KIND")
    parser.add_argument("--write", action="store_true", help="bring the files of this checkout up to date")
    parser.add_argument("--check", action="store_true", help="say which of them are stale; exit code 1 then")


def run(options: argparse.Namespace, page: Page) -> int:
    """Prints, writes or checks."""
    if not (options.write or options.check):
        sys.stdout.write(KINDS[options.kind]())
        return DONE
    if not is_checkout(CHECKOUT):
        raise Stop(
            f"{CHECKOUT} is no checkout of compactd.",
            hint="Install it with `pip install --editable .` there.",
        )
    stale = tuple(stale_files(CHECKOUT))
    names = [file.path.relative_to(CHECKOUT).as_posix() for file in stale]
    if options.write:
        for file in stale:
            file.path.parent.mkdir(parents=True, exist_ok=True)
            file.path.write_text(file.wanted, "utf-8")
    if page.is_json:
        page.json({"written" if options.write else "stale": names})
    else:
        for name in names:
            page.line(f"written: {name}" if options.write else f"stale: {name} (mend: {COMMAND})")
    return FAILED if stale and not options.write else DONE
