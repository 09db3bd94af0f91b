"""`compactd convert IN OUT --to FORMAT`: writes a session file in another program's format."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.exit_codes import DONE
from compactd.cli.framework.load_file import (
    SUPPORTED_FILES_HINT,
    TIMEOUT_S,
    check_path,
    parse_file,
    read_bytes,
)
from compactd.cli.framework.options import FORCE
from compactd.cli.framework.output import check_writable, write_atomically
from compactd.cli.framework.page import Page, one_line, plural, without_controls
from compactd.client import Client
from compactd.core.text.escape_invisible import visible_json
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import SUPPORTED, WRITABLE, title_of
from compactd.formats.files.write import Written, write
from compactd.session.export_file import FORMATS

ABOUT = f"""\
Converts the session in IN to another program's format and writes it to OUT: messages,
tool calls, results, usage, times and recorded compactions. Lists what the new format
cannot represent, by message. If OUT is -, it writes to standard output.

{SUPPORTED_FILES_HINT}
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str
    output: str
    to: str
    source_format: str
    force: bool


def run(options: Options, page: Page) -> int:
    """Convert the file, write the result, and list what is lost."""
    path = check_path(options.file)
    target = None if options.output == "-" else check_writable(options.output, path, force=options.force)
    data = read_bytes(path)
    file = parse_file(path, data, options.source_format)
    made = convert(data, file, options.to)
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(_for_terminal(made.data) if sys.stdout.isatty() else made.data)
        for warning in made.warnings:
            sys.stderr.write(f"{one_line(warning)}\n")
        return DONE
    write_atomically(target, made.data)
    if page.is_json:
        page.json(
            {
                "from": file.format,
                "to": options.to,
                "path": str(target),
                "messages": len(file.messages),
                "bytes": len(made.data),
                "warnings": made.warnings,
            }
        )
        return DONE
    what = f"{plural(len(file.messages), 'message')} of {title_of(file.format)}"
    page.line(f"wrote {target}: {what} as {title_of(options.to)}")
    for warning in made.warnings:
        page.line(f"  {warning}", "due")
    return DONE


def _for_terminal(data: bytes) -> bytes:
    """Return a file's bytes as safe text for a terminal. JSON keeps its value."""
    text = data.decode("utf-8", "replace")
    return (visible_json(text) if text.startswith(("{", "[")) else without_controls(text)).encode()


def convert(data: bytes, file: SessionFile, format: str) -> Written:
    """Convert the session `file`, which was parsed from `data`, to one of `FORMATS`.

    If `file` is a compactd journal, or if `format` has no writer (`WRITABLE`), a temporary daemon converts
    the file. The daemon's data folder is deleted afterwards, and its errors are raised. O(bytes).
    """
    if format in WRITABLE and file.format != "compactd":
        written = write(file, format)
        return Written(data=written.data, warnings=(*file.warnings, *written.warnings))
    with tempfile.TemporaryDirectory(prefix="compactd-") as home:
        source, target = Path(home) / "in", Path(home) / "out"
        source.write_bytes(data)
        with Client(env={**os.environ, "COMPACTD_HOME": home}) as client:
            taken = client.session_import(path=str(source), format=file.format, timeout_s=TIMEOUT_S)
            given = client.session_export(
                session_id=taken.session_id, format=format, path=str(target), timeout_s=TIMEOUT_S
            )
        return Written(data=target.read_bytes(), warnings=(*taken.warnings, *given.warnings))


COMMAND = Command(
    "convert",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("file", "the session file; - is standard input", metavar="IN", is_file=True),
        Argument("output", "the file to write; - is standard output", metavar="OUT", is_file=True),
        Option("--to", ", ".join(FORMATS), metavar="FORMAT", required=True, choices=FORMATS),
        Option(
            "--from",
            "the format of IN, if it is not recognised",
            field="source_format",
            metavar="FORMAT",
            default="auto",
            choices=("auto", *SUPPORTED),
        ),
        FORCE,
    ),
    examples=(
        (
            "compactd convert session.jsonl messages.json --to openai",
            "write a list of messages for OpenAI's API",
        ),
        ("compactd convert chat.md - --to neutral | jq .role", "write to standard output"),
    ),
)
