"""Run a command line: parse it, load the command, and turn every failure into a message and an exit code."""

from __future__ import annotations

import importlib
import io
import os
import sys

import click
from click.exceptions import Abort, Exit
from click.shell_completion import CompletionItem, shell_complete

from compactd.cli.command_list import COMMANDS, module_of
from compactd.cli.framework.command import SETTINGS
from compactd.cli.framework.exit_codes import FAILED, INTERRUPTED, USAGE, CommandError, print_error
from compactd.cli.framework.page import Page, make_encodable, one_line


class LazyGroup(click.Group):
    """The group of all commands. It imports a command's module only when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of the command `cmd_name` and return its `COMMAND`. Return None if there is no
        such command.
        """
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(module_of(cmd_name)).COMMAND
        assert isinstance(command, click.Command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the command names that start with `incomplete`. No command's module is imported."""
        return [
            CompletionItem(name, help=about.told)
            for name, about in COMMANDS.items()
            if name.startswith(incomplete)
        ]


VARIABLE = "_COMPACTD_COMPLETE"
"""The environment variable with which a completion script asks for suggestions."""

GROUP = LazyGroup("compactd", context_settings=dict(SETTINGS))


def run_command(arguments: list[str]) -> int:
    """Run the command that `arguments` start with. Return its exit code. Errors are printed without a
    traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A pipe gets UTF-8 whatever the locale is. A terminal gets its own encoding.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    try:
        code = _exit_code(arguments)
        sys.stdout.flush()
    except OSError as error:
        return output_failed(error)
    return code


def output_failed(error: OSError) -> int:
    """Say that standard output could not be written, unless the reader of the pipe has closed it. Return the
    exit code.
    """
    _detach_stdout()
    if not isinstance(error, BrokenPipeError):
        sys.stderr.write(f"the output of the command could not be written: {error.strerror or error}\n")
    return FAILED


def complete(instruction: str) -> int:
    """Print the suggestions that a completion script asked for. Return the exit code. `instruction`: the
    value of the environment variable `VARIABLE`.
    """
    return shell_complete(GROUP, {}, "compactd", VARIABLE, instruction)


def _exit_code(arguments: list[str]) -> int:
    try:
        with GROUP.make_context("compactd", arguments) as ctx:
            code = GROUP.invoke(ctx)
        return code if isinstance(code, int) else USAGE
    except Exit as end:
        return end.exit_code
    except click.ClickException as error:
        where = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "compactd"
        told_as = one_line(make_encodable(error.format_message()))
        message = f"{where}: {told_as[:1].lower()}{told_as[1:]}"
        hint = f"See `{where} --help`."
        if "--" not in arguments and _is_option_of_another_command(error):
            hint = f"Put -- before the command. {hint}"
        stop = CommandError(message, hint=hint, exit_code=USAGE)
        return print_error(Page(is_json="--json" in arguments), stop)
    except (KeyboardInterrupt, Abort):
        sys.stderr.write("\n")
        return INTERRUPTED


def _is_option_of_another_command(error: click.ClickException) -> bool:
    """Return whether an unknown option may belong to the command line that the command runs."""
    return (
        isinstance(error, click.NoSuchOption)
        and error.ctx is not None
        and any((one.metavar or "").startswith("-- ") for one in error.ctx.command.params)
    )


def _detach_stdout() -> None:
    # Python would flush stdout again at exit and print an error.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
