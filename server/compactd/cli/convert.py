"""`compactd convert IN OUT --to FORMAT`: a session file in another program's format."""

from __future__ import annotations

import argparse
import sys

from compactd.cli.converting import FORMATS, converted
from compactd.cli.ending import DONE
from compactd.cli.loading import KNOWN, bytes_at, checked, file_in
from compactd.cli.output import writable, write_beside
from compactd.cli.page import Page, plural
from compactd.formats.detect import NAMES, SUPPORTED

ABOUT = f"""\
Writes the session in IN to OUT as another program keeps it: messages, calls, results,
usage, times, and the compactions that it recorded. What OUT cannot hold is listed, by
message. OUT `-` is standard output.

{KNOWN}
"""


def fill(parser: argparse.ArgumentParser) -> None:
    """Two files and a format."""
    parser.description = ABOUT
    parser.add_argument("file", metavar="IN", help="a session file, - for standard input")
    parser.add_argument("output", metavar="OUT", help="the file to write, - for standard output")
    parser.add_argument("--to", required=True, choices=FORMATS, metavar="FORMAT", help=", ".join(FORMATS))
    parser.add_argument(
        "--from",
        dest="source_format",
        default="auto",
        choices=("auto", *SUPPORTED),
        metavar="FORMAT",
        help="what IN is, where its content does not say it",
    )


def run(options: argparse.Namespace, page: Page) -> int:
    """Reads, writes, and tells what is lost."""
    path = checked(options.file)
    target = None if options.output == "-" else writable(options.output, path)
    data = bytes_at(path)
    file = file_in(path, data, options.source_format)
    made = converted(data, file, options.to)
    if target is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(made.data)
        for warning in made.warnings:
            sys.stderr.write(f"{warning}\n")
        return DONE
    write_beside(target, made.data)
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
    what = f"{plural(len(file.messages), 'message')} of {NAMES.get(file.format, file.format)}"
    page.line(f"wrote {target}: {what} as {NAMES.get(options.to, options.to)}")
    for warning in made.warnings:
        page.line(f"  {warning}", "due")
    return DONE
