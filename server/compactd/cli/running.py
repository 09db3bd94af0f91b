"""Runs one command: its arguments, its output, and how it ends when something goes wrong."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import NoReturn, Protocol

from compactd.cli.ending import DONE, FAILED, INTERRUPTED, USAGE, Stop, blame, last_words
from compactd.cli.page import Page, cleaned, encodable
from compactd.client import DaemonGone, RpcError
from compactd.errors import CompactdError

PATHS = ("file", "output")
"""Options that name files, whatever bytes their names are made of."""


class Command(Protocol):
    """What each command's module has."""

    def fill(self, parser: argparse.ArgumentParser) -> None:
        """Says what the command is and adds its arguments."""

    def run(self, options: argparse.Namespace, page: Page) -> int:
        """Does it; the exit code."""
        ...


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in two lines, without the whole usage."""

    def error(self, message: str) -> NoReturn:
        """Ends the command."""
        self.exit(USAGE, f"{self.prog}: {message}\n`{self.prog} --help` tells more.\n")


def run_command(name: str, arguments: list[str]) -> int:
    """The exit code of the command `name`. Nothing that goes wrong leaves a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A pipe gets the same text whatever the locale; a terminal what it can show.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    try:
        code = _ended(name, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has seen enough.
        _let_go_of_stdout()
        return FAILED
    except OSError as error:
        _let_go_of_stdout()
        sys.stderr.write(f"the output could not be written: {error.strerror or error}\n")
        return FAILED
    return code


def _ended(name: str, arguments: list[str]) -> int:
    command = _command(name)
    parser = _Parser(
        prog=f"compactd {name}", formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    if name != "serve":
        parser.add_argument("--json", action="store_true", help="one JSON object with the same facts")
    command.fill(parser)
    try:
        options = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else DONE
    for option, value in vars(options).items():
        if isinstance(value, str) and option not in PATHS:
            setattr(options, option, encodable(value))
    page = Page(is_json="json" in options and options.json)
    try:
        return command.run(options, page)
    except Stop as stop:
        return _told(page, stop)
    except RpcError as error:
        return _told(page, Stop(error.message, hint=blame(error), code=error.code, data=error.data))
    except CompactdError as error:
        return _told(page, Stop(error.message, code=error.code, data=error.data))
    except DaemonGone as error:
        return _told(page, Stop(f"{error}.", hint=last_words(error.stderr)))
    except TimeoutError as error:
        return _told(page, Stop(f"{error}.", hint="The daemon was ended; nothing was written."))
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED


def _command(name: str) -> Command:
    match name:
        case "compact":
            from compactd.cli import compact

            return compact
        case "inspect":
            from compactd.cli import inspect

            return inspect
        case "chat":
            from compactd.cli import chat

            return chat
        case "search":
            from compactd.cli import search

            return search
        case "sessions":
            from compactd.cli import sessions

            return sessions
        case "models":
            from compactd.cli import models

            return models
        case "classify":
            from compactd.cli import classify

            return classify
        case "schema":
            from compactd.cli import schema

            return schema
        case "convert":
            from compactd.cli import convert

            return convert
        case "doctor":
            from compactd.cli import doctor

            return doctor
        case "conformance":
            from compactd.cli import conformance

            return conformance
        case _:
            from compactd.cli import serve

            return serve


def _told(page: Page, stop: Stop) -> int:
    message = encodable(stop.message)
    if page.is_json:
        page.json({"error": {"code": stop.code, "message": message, "hint": stop.hint, "data": stop.data}})
    else:
        lines = [message, stop.hint] if stop.hint else [message]
        sys.stderr.write("".join(f"{cleaned(line)}\n" for line in lines))
    return stop.exit_code


def _let_go_of_stdout() -> None:
    # Python would flush it once more at its end, and complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
