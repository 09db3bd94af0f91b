"""`compactd reduce`: a filter that leaves out of a command's output what a model does not need."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.complete import session_ids
from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE, CommandError
from compactd.cli.framework.page import Page, ask_for_text, one_line, without_controls, write_errors
from compactd.cli.reduce.child import Child, run_child
from compactd.cli.reduce.pieces import pieces
from compactd.core.reduce.output import LEVELS, Level

ABOUT = """\
Reads the output of a command and prints what a model needs of it: failures, errors and
short diffs in full, repeated and generated text left out. Each mark says how much was
left out, and which command prints the whole output:

  [… 1,240 lines left out, compactd reduce --expand k3f7q2-e41]

With a command after --, it runs the command and ends with its exit code. Short outputs,
whatever is no text and what compactd's own commands print go through unchanged. So does
everything if something fails; then a line on standard error says why. The originals are
stored on this machine, in a session for each project folder (`compactd sessions`).
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    run: tuple[str, ...]
    tool: str
    command: str | None
    level: Level | None
    session: str | None
    observe: bool
    expand: str | None


def run(options: Options, page: Page) -> int:
    """Filter standard input or the output of the command, or print an original."""
    _check(options)
    if options.expand is not None:
        return _expand(options.expand, options.session, page)
    if not options.run:
        ask_for_text()
        _filter(options, page, None)
        return DONE
    with run_child(options.run) as child:
        try:
            _filter(options, page, child)
        except BrokenPipeError:
            # Nobody reads on. The command sees the same when it writes next.
            child.output.close()
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return child.exit_code()


def _check(options: Options) -> None:
    """Raise `CommandError` if options are combined that exclude each other."""
    exclusions = [("--command", options.command is not None, "a command after --", bool(options.run))]
    if options.expand is not None:
        exclusions += [
            ("--expand", True, "--observe", options.observe),
            ("--expand", True, "--command", options.command is not None),
            ("--expand", True, "a command after --", bool(options.run)),
        ]
    for one, has_one, other, has_other in exclusions:
        if has_one and has_other:
            raise CommandError(
                f"{one} and {other} exclude each other.", hint="Give one of them.", exit_code=USAGE
            )


def _filter(options: Options, page: Page, child: Child | None) -> None:
    """Print what is left of standard input, or of the output of `child`."""
    from compactd._runtime.programs import project_root
    from compactd.cli.reduce.own_commands import runs_compactd
    from compactd.cli.reduce.reducer import Reducer
    from compactd.integrations.outputs.own_session import Call

    command = options.command or (shlex.join(options.run) if options.run else None)
    arguments = {} if command is None else {"command": command}
    # What the model recalls is never reduced.
    is_own = command is not None and runs_compactd(command)
    source = sys.stdin.buffer if child is None else child.output
    with Reducer(
        project_root(_current_folder()),
        dict(os.environ),
        session_id=options.session,
        level=options.level,
        observe=options.observe,
    ) as reducer:
        for piece in pieces(source):
            code = child.exit_code() if child is not None and piece.is_last else None
            if page.is_json and piece.text is None:
                raise CommandError(
                    "the output is no text in UTF-8.", hint="Leave out --json.", exit_code=FAILED
                )
            call = Call(name=options.tool, arguments=arguments, is_error=bool(code))
            found = None if is_own or piece.text is None else reducer.reduce(piece.text, call)
            if page.is_json:
                page.json(
                    {
                        "content": piece.text if found is None else found.text,
                        "reduced": found is not None and found.text != piece.text,
                        "observed": found is not None and options.observe,
                        "tokens_before": None if found is None else found.tokens_before,
                        "tokens_after": None if found is None else found.tokens_after,
                        "rules": () if found is None else found.rules,
                        "session_id": reducer.session_id,
                        "entry_id": None if found is None else found.entry_id,
                        "exit_code": code,
                        "failure": reducer.failure or None,
                    }
                )
            elif found is None or found.text == piece.text:
                _write(piece.data)
            else:
                _write(found.text.encode())
    if reducer.failure and not page.is_json:
        write_errors([f"compactd reduce: the output is unchanged: {one_line(reducer.failure)}"])


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except OSError:
        # It was deleted. The command can run all the same.
        return Path(os.sep)


def _expand(text: str, session_id: str | None, page: Page) -> int:
    """Print the original that a mark names: byte for byte, unless a terminal would act on it."""
    from compactd.client import Client, RpcError
    from compactd.integrations.outputs.own_session import read_original
    from compactd.integrations.outputs.references import Reference, read_reference
    from compactd.protocol.errors import InvalidParams, SessionNotFound

    where = read_reference(text) if session_id is None else Reference(session_id, text)
    if where is None:
        raise CommandError(
            f"{text!r} is not what a mark of `compactd reduce` names, such as k3f7q2-e41.",
            hint="For an entry of another session: compactd reduce --session ID --expand e41.",
            exit_code=USAGE,
        )
    with Client() as client:
        try:
            original = read_original(client, where)
        except RpcError as error:
            if error.code not in (InvalidParams.code, SessionNotFound.code):
                raise
            message = f"no output is stored as {text!r}."
            hint = "Its session may have been deleted. `compactd search WORDS` finds what is stored."
            if session_id is not None and error.code == SessionNotFound.code:
                message, hint = f"no session {session_id!r}.", "`compactd sessions` lists them."
            elif session_id is not None:
                message = f"session {session_id!r} has no output {text!r}."
                hint = "`compactd search WORDS` finds what is stored."
            raise CommandError(message, hint=hint, exit_code=USAGE, code=error.code) from error
    if page.is_json:
        page.json({"content": original, "session_id": where.session_id, "entry_id": where.entry_id})
    elif sys.stdout.isatty():
        page.text(without_controls(original))
    else:
        _write(original.encode())
    return DONE


COMMAND = Command(
    "reduce",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "run",
            "a command to run; its output is filtered instead of standard input",
            metavar="-- COMMAND",
            required=False,
            is_many=True,
            is_file=True,
        ),
        Option(
            "--tool", "the name of the agent's tool that prints this (bash)", metavar="NAME", default="bash"
        ),
        Option("--command", "the command whose output comes in; it tells what the output is"),
        Option("--level", "how much is left out (default)", choices=LEVELS),
        Option(
            "--session",
            "keep the original in this stored session, and compare the output with it",
            metavar="ID",
            completed=session_ids,
        ),
        Flag("--observe", "change nothing; count what would be left out (`compactd usage` shows it)"),
        Option("--expand", "print the whole output that a mark names", metavar="REFERENCE"),
    ),
    examples=(
        ("compactd reduce -- make test", "run the tests; show their failures"),
        ('git diff | compactd reduce --command "git diff"', "filter the output of a pipe"),
        ("compactd reduce --expand k3f7q2-e41", "print the whole output again"),
    ),
)
