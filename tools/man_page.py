"""Generates the manual page `compactd.1` and the page `docs/commands.md` from the commands themselves.

`python tools/man_page.py --write` updates both. A test fails if one is out of date.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from compactd import __version__
from compactd.cli.command_list import COMMANDS, module_of
from compactd.cli.framework.command import Argument, Command, CommandGroup

MAN_PAGE = Path(__file__).parents[1] / "docs" / "compactd.1"
PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
COMMAND = "python tools/man_page.py --write"

SUMMARY = (
    "stores conversations with language models, counts their tokens, and compacts them before they overflow"
)

EXIT_CODES = (
    ("0", "done"),
    ("1", "failed; doctor: the file has problems"),
    ("2", "the command line is wrong, or the file cannot be read"),
    ("3", "nothing to do, for example nothing to compact or nothing found"),
    ("130", "ended by Ctrl-C"),
)
ENVIRONMENT = (
    ("COMPACTD_HOME", "the folder for sessions, their index and learned windows"),
    ("COMPACTD_LOG", "what the daemon logs to standard error: debug, info, warning or error"),
    ("COMPACTD_SHARED", "1: `serve` uses the shared daemon, as `attach` does"),
    ("COMPACTD_IDLE_EXIT", "seconds without a client after which a shared daemon ends; by default 300"),
    (
        "ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, ...",
        "API keys of providers; they can also be in keys.toml",
    ),
    ("PAGER, LESS", "the pager for long output in a terminal, and its options; by default less with FRX"),
    ("NO_COLOR, FORCE_COLOR", "use no colours; use colours and bars also in a pipe"),
)


def commands() -> Iterator[tuple[str, Command | CommandGroup]]:
    """Yields (name, command) of every command, each group followed by its subcommands, in the order of the
    help.
    """
    for name in COMMANDS:
        command = importlib.import_module(module_of(name)).COMMAND
        yield name, command
        if isinstance(command, CommandGroup):
            for inner, one in command.commands.items():
                assert isinstance(one, Command)
                yield f"{name} {inner}", one


def usage_of(words: str, command: Command | CommandGroup) -> tuple[click.Context, str]:
    """Returns (a click context for the command's parameters, its usage line)."""
    ctx = click.Context(command, info_name=f"compactd {words}", help_option_names=["-h", "--help"])
    return ctx, " ".join((ctx.command_path, *command.collect_usage_pieces(ctx)))


def params_of(ctx: click.Context, command: click.Command) -> list[tuple[str, str]]:
    """Returns (spelling, description) of each argument and option."""
    rows: list[tuple[str, str]] = []
    for param in command.get_params(ctx):
        if isinstance(param, Argument):
            rows.append((param.make_metavar(ctx), param.told))
        elif (record := param.get_help_record(ctx)) is not None:
            rows.append(record)
    return rows


def man_page() -> str:
    """Returns the manual page with man(7) macros."""
    lines = [
        '.\\" Generated: ' + COMMAND,
        f'.TH COMPACTD 1 "" "compactd {__version__}" "User Commands"',
        ".ad l",
        ".nh",
        ".SH NAME",
        f"compactd \\- {roff(SUMMARY)}",
        ".SH SYNOPSIS",
        ".B compactd",
        "\\fICOMMAND\\fR [\\fIOPTIONS\\fR] ...",
        ".SH DESCRIPTION",
        roff(
            "compactd is a client of the daemon, and the daemon itself (compactd serve). In a terminal,"
            " long output goes through a pager. In a pipe it is plain text, one record per line."
        ),
        ".SH COMMANDS",
    ]
    for words, command in commands():
        ctx, usage = usage_of(words, command)
        lines += [f".SS {roff(usage)}", *block(command.about)]
        for written, told in params_of(ctx, command):
            lines += [".TP", f"\\fB{roff(written)}\\fR", roff(told)]
        if command.examples:
            lines += [".PP", "Examples:", ".RS 4"]
            for line, told in command.examples:
                lines += [".PP", f"\\fB{roff(line)}\\fR", ".br", roff(told)]
            lines.append(".RE")
    for title, rows in (("EXIT STATUS", EXIT_CODES), ("ENVIRONMENT", ENVIRONMENT)):
        lines.append(f".SH {title}")
        for name, told in rows:
            lines += [".TP", f"\\fB{roff(name)}\\fR", roff(told)]
    return "\n".join(lines) + "\n"


def block(text: str) -> list[str]:
    """Returns paragraphs as roff. Paragraphs with indented lines keep their line breaks."""
    lines: list[str] = []
    for paragraph in text.strip("\n").split("\n\n"):
        is_table = any(line.startswith(" ") for line in paragraph.split("\n"))
        lines.append(".PP")
        lines += [".nf"] if is_table else []
        lines += [roff(line) for line in paragraph.split("\n")]
        lines += [".fi"] if is_table else []
    return lines


def roff(text: str) -> str:
    """Escapes `text` for roff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("\n", " ")
    # Escapes from groff_char(7). Unescaped, ' ` ^ and ~ become typographic characters.
    for sign, name in (("'", "\\(aq"), ("`", "\\(ga"), ("~", "\\(ti"), ("^", "\\(ha"), ("…", "...")):
        text = text.replace(sign, name)
    return f"\\&{text}" if text.startswith((".", " ")) else text


def page() -> str:
    """Returns the page of commands."""
    lines = [
        "# The command line",
        "",
        f"`compactd` {SUMMARY}. Each command takes `--help`.",
        "",
        f"<!-- written by {COMMAND} -->",
        "",
    ]
    for words, command in commands():
        ctx, usage = usage_of(words, command)
        lines += [
            f"## {words}",
            "",
            "```text",
            usage,
            "```",
            "",
            "```text",
            command.about.strip("\n"),
            "```",
            "",
        ]
        lines += ["| | |", "|---|---|"]
        lines += [
            f"| `{written.replace('|', chr(92) + '|')}` | {told} |"
            for written, told in params_of(ctx, command)
        ]
        lines.append("")
        for line, told in command.examples:
            lines.append(f"- `{line}`: {told}")
        lines.append("")
    for title, rows in (("Exit codes", EXIT_CODES), ("Environment", ENVIRONMENT)):
        lines += [
            f"## {title}",
            "",
            "| | |",
            "|---|---|",
            *(f"| `{name}` | {told} |" for name, told in rows),
            "",
        ]
    return "\n".join(lines)


def main() -> int:
    """Prints the manual page, or writes it."""
    if "--write" in sys.argv[1:]:
        MAN_PAGE.write_text(man_page(), "utf-8")
        PAGE.write_text(page(), "utf-8")
    else:
        sys.stdout.write(man_page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
