"""`compactd conformance -- COMMAND`: tests whether a program implements the protocol correctly."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE, CommandError
from compactd.cli.framework.options import FORCE
from compactd.cli.framework.output import refuse_links, refuse_to_overwrite
from compactd.cli.framework.page import Page
from compactd.client.events import own_command

if TYPE_CHECKING:
    from compactd_conformance.bench import Check
    from compactd_conformance.suite import Verdict

ABOUT = """\
Tests whether COMMAND implements the protocol. Starts it many times, sends requests,
kills it, damages its files, and reports each sentence of the protocol that it
violates. COMMAND must read requests on stdin, answer on stdout, and store its data
below COMPACTD_HOME, which is a temporary folder during the test. Without COMMAND,
this compactd is tested.

Needs the suite, which is a package of its own. If it is missing, the command prints the
line that installs it.

exit codes: 0 all passed, 1 some failed, 2 the command cannot be started
"""


SUITE = "compactd_conformance"
"""The suite's package, which is a distribution of its own. Only functions import it."""

PATIENCE_S = 20.0
"""How long to wait for an answer, in seconds. A working program needs far less."""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{text!r} is not a number of seconds above 0")
    return seconds


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    command: tuple[str, ...]
    only: tuple[str, ...]
    junit: str | None
    force: bool
    patience: float
    list: bool
    into: str | None


def _checks(begin: str) -> list[tuple[str, str]]:
    if find_spec(SUITE) is None:
        return []
    from compactd_conformance.suite import CHECKS

    return [(check.name, check.says) for check in CHECKS if check.name.startswith(begin)]


def run(options: Options, page: Page) -> int:
    """Run the checks, or list them."""
    if find_spec(SUITE) is None:
        from compactd._runtime.installation import suite_command

        raise CommandError(
            "the conformance suite is not installed.",
            hint=f"It is released together with compactd. Install it with: {suite_command()}",
            exit_code=USAGE,
        )
    from compactd_conformance import report, suite
    from compactd_conformance.frames import NotStarted
    from compactd_conformance.suite import CHECKS

    names = {check.name for check in CHECKS}
    if unknown := [name for name in options.only if name not in names]:
        raise CommandError(
            f"there is no check {unknown[0]!r}.",
            hint="`compactd conformance --list` lists them.",
            exit_code=USAGE,
        )
    checks = [check for check in CHECKS if not options.only or check.name in options.only]
    if options.list:
        return _list(options, page, checks)
    if options.junit is not None:
        refuse_links(Path(options.junit))
        refuse_to_overwrite(Path(options.junit), force=options.force)
    command = tuple(options.command) or own_command()
    try:
        verdicts = suite.run(
            command,
            os.environ,
            only=options.only,
            patience_s=options.patience,
            tell=None if page.is_json else lambda verdict: _print_verdict(page, verdict),
        )
    except NotStarted as error:
        raise CommandError(f"the command cannot be tested: {error}.", exit_code=USAGE) from error
    if options.junit is not None:
        _write(Path(options.junit), report.as_junit(verdicts))
    if page.is_json:
        page.json(report.as_json(command, verdicts))
    else:
        page.line()
        page.line(report.closing_line(verdicts))
    return FAILED if report.count(verdicts, "failed") else DONE


def _list(options: Options, page: Page, checks: Sequence[Check]) -> int:
    from compactd_conformance import report

    if options.into is not None:
        path = Path(options.into)
        refuse_links(path)
        try:
            path.write_text(report.with_list(path.read_text("utf-8"), checks), "utf-8")
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot update {path}: {error}.", exit_code=USAGE) from error
    elif page.is_json:
        listed = [{"name": c.name, "law": c.law, "says": c.says, "framings": c.framings} for c in checks]
        page.json({"checks": listed})
    else:
        page.text(report.list_checks(checks))
    return DONE


def _print_verdict(page: Page, verdict: Verdict) -> None:
    from compactd_conformance import report

    page.line(report.line_of(verdict), "bad" if verdict.outcome == "failed" else "")
    for line in report.lines_below(verdict):
        page.line(line)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror}.", exit_code=USAGE) from error


COMMAND = Command(
    "conformance",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("command", "the command to test, after --", required=False, is_many=True, is_file=True),
        Option(
            "--only", "run only this check; may be repeated", metavar="NAME", is_many=True, completed=_checks
        ),
        Option("--junit", "also write the report as JUnit XML", metavar="FILE", is_file=True),
        FORCE,
        Option(
            "--patience",
            f"seconds to wait for an answer ({PATIENCE_S:g})",
            metavar="S",
            read=_seconds,
            default=PATIENCE_S,
        ),
        Flag("--list", "list the checks and what they test; start nothing"),
        Option(
            "--into",
            "with --list: replace the list in this document",
            metavar="FILE",
            is_file=True,
        ),
    ),
    examples=(
        ("compactd conformance -- my-daemon --stdio", "run all checks on your program"),
        ("compactd conformance --only one-answer --only seq-has-no-gap -- my-daemon", "run two checks"),
        ("compactd conformance --junit report.xml -- my-daemon", "write a report for a build server"),
    ),
)
