"""`compactd schema`: prints the protocol for programs, or updates the generated files of a checkout."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from compactd.cli.codegen import COMMAND as MENDING
from compactd.cli.codegen import KINDS, is_checkout, stale_files
from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.exit_codes import DONE, FAILED, CommandError
from compactd.cli.framework.page import Page

ABOUT = """\
Prints the protocol in a form for programs, generated from the daemon's table of
methods: `json` (JSON Schema 2020-12), `openrpc`, `typescript`, `lua` (LuaLS
annotations), `elisp` or `python`. Without KIND: `json`.
"""

CHECKOUT = Path(__file__).parents[4]


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    kind: str | None
    write: bool
    check: bool


def run(options: Options, page: Page) -> int:
    """Print a schema, or write or check the generated files."""
    if not (options.write or options.check):
        sys.stdout.write(KINDS[options.kind or "json"]())
        return DONE
    if not is_checkout(CHECKOUT):
        raise CommandError(
            f"{CHECKOUT} is not a checkout of compactd.",
            hint="Run `pip install --editable .` in a checkout, then run this command again.",
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
            page.line(f"written: {name}" if options.write else f"stale: {name} (update it with: {MENDING})")
    return FAILED if stale and not options.write else DONE


COMMAND = Command(
    "schema",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("kind", ", ".join(KINDS), required=False, choices=tuple(KINDS)),
        Flag("--write", "update the generated files of this checkout"),
        Flag("--check", "list the stale generated files; exit code 1 if there are any"),
    ),
    examples=(
        (
            "compactd schema > compactd.schema.json",
            "write the JSON Schema of every request, answer and event",
        ),
        ("compactd schema typescript > compactd.ts", "write the types for a client"),
    ),
    is_paged=True,
)
