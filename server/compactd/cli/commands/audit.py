"""`compactd audit`: what a session cost, why its cache was built again, and what its compactions lost."""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from compactd._runtime.interpreter import paused_gc
from compactd.cli.agent_files.choose import AGENT, PICK, SESSION_FILE, Choice, choose_file, nothing_found
from compactd.cli.framework.command import Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.options import FORCE
from compactd.cli.framework.page import Page, make_encodable, one_line, print_notes
from compactd.cli.framework.progress import ProgressSpinner

if TYPE_CHECKING:
    from compactd.cli.audit.result import Audit
    from compactd.cli.usage.prices import PriceList

ABOUT = """\
Shows what a session of an agent cost: the bill by kind of token, each time the prompt
cache was built again with its cause and price, what the context lacked after each
compaction (the words of constraints and open tasks, facts that were used again later),
an estimate of what the session would have cost if compactd's policy had decided when
to compact, and an estimate of what it would have saved to reduce tool outputs before they
entered the context. What the file does not say is `unknown`. Costs are at list prices;
with a subscription, you do not pay them.

A cache is built again after a compaction or a prune, for another model, after a rewind, and
if it was not used for longer than it lasts (`expired`). Files show no system prompt and
tools, so a change of these is `unknown`. The estimates are no promise: they say what they assume.
"""


MAX_NAMED = 10
"""How many sessions are named if an id is not unique."""
_ID = re.compile(r"[0-9A-Za-z_-]{4,80}")
"""The beginning of a session's id."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    all: bool
    pick: bool
    agent: str | None
    html: str | None
    utc: bool
    force: bool


def run(options: Options, page: Page) -> int:
    """Read the files and print the audit."""
    zone = UTC if options.utc else None
    if options.all:
        return _run_all(options, page)
    choice = choose_file(_path_of(options.file), pick=options.pick, agent=options.agent, page=page)
    return _run_file(options, choice, page, zone)


def _path_of(name: str | None) -> str | None:
    """Return FILE. If there is no such file, but one session whose id begins so (as `--all` shows it), return
    its path. Raise `CommandError` if there are several."""
    from compactd.cli.agent_files.places import find_files

    if name is None or _ID.fullmatch(name) is None or Path(name).exists():
        return name
    begins = re.compile(rf"(?:\A|[_-]){re.escape(name)}")
    found = [file for file in find_files(os.environ) if begins.search(file.path.name)]
    if len(found) > 1:
        paths = "\n".join(f"  {one_line(make_encodable(str(file.path)))}" for file in found[:MAX_NAMED])
        raise CommandError(
            f"{name} is the beginning of {len(found):,} sessions.",
            hint=f"Name a file, such as one of these:\n{paths}",
        )
    return str(found[0].path) if found else name


def _run_file(options: Options, choice: Choice, page: Page, zone: tzinfo | None) -> int:
    from compactd.cli.audit.bill import bill_of
    from compactd.cli.audit.render import show_bill, show_rest
    from compactd.cli.audit.replay import replay
    from compactd.cli.audit.result import Audit, audit_fields
    from compactd.cli.audit.trail import read_trail
    from compactd.cli.framework.load_file import check_path, read_bytes
    from compactd.cli.framework.output import check_writable
    from compactd.cli.usage.prices import PriceList
    from compactd.cli.usage.readers import READABLE, agent_of, empty_usage

    source = check_path(choice.name)
    target = None if options.html is None else check_writable(options.html, source, force=options.force)
    prices = PriceList()
    with paused_gc():
        with ProgressSpinner(f"reading {one_line(source.name)}"):
            data = read_bytes(source)
            if not data.strip():
                raise CommandError(f"cannot audit {choice.name}: it is empty.")
            agent = agent_of(data)
            if agent is None or agent not in READABLE:
                raise CommandError(
                    f"cannot audit {choice.name}: it is no session file of {', '.join(READABLE)}.",
                    hint="`compactd inspect FILE` reads the other formats that compactd knows.",
                )
            trail = read_trail(data, empty_usage(source, agent))
            bill = bill_of(trail, prices)
        if not bill.total.requests:
            return _say_no_usage(page, choice)
        if not page.is_json:
            # The user can read this while the rest is computed.
            show_bill(page, bill, prices, zone)
            sys.stdout.flush()
        audit = _with_losses(Audit(bill=bill, policy=replay(trail, prices)), data)
        audit = _with_reduction(audit, data)
    if not page.is_json:
        show_rest(page, audit, zone)
    wrote = None if target is None else _write(audit, source, target, prices, zone)
    if page.is_json:
        output = {} if wrote is None else {"output": {"html": wrote}}
        page.json({**audit_fields(audit, prices), **choice.facts, **output})
    else:
        if wrote is not None:
            page.line(f"wrote {wrote}: a page, for any browser")
        print_notes(audit.notes)
    return DONE


def _with_losses(audit: Audit, data: bytes) -> Audit:
    """Return the audit with what the compactions lost. If the messages cannot be read, a note says so."""
    from compactd.cli.audit.losses import losses_of
    from compactd.protocol.errors import CompactdError

    bill = audit.bill
    if not any(one.boundary.kind == "compaction" for one in bill.compactions):
        return audit
    with ProgressSpinner("reading the messages") as spinner:
        try:
            losses = losses_of(data, bill.agent, bill.project, spinner.set_text)
        except CompactdError as error:
            return replace(audit, notes=(f"what the compactions lost is not known: {error.message}",))
    return replace(audit, losses=tuple(losses))


def _with_reduction(audit: Audit, data: bytes) -> Audit:
    """Return the audit with what reductions saved and would have saved. If the messages cannot be read, a
    note says so."""
    from compactd.cli.audit.reductions import estimate_reduction
    from compactd.cli.usage.reductions import read_reductions, sum_up
    from compactd.protocol.errors import CompactdError

    bill = audit.bill
    name = f"{bill.agent}:{bill.session_id}"
    own = [one for one in read_reductions(os.environ) if one.session_id == name]
    with ProgressSpinner("reading the tool outputs") as spinner:
        try:
            found = estimate_reduction(data, bill.agent, spinner.set_text)
        except CompactdError as error:
            why = f"what a reduction would have saved is not known: {error.message}"
            return replace(audit, reduced=sum_up(own), notes=(*audit.notes, why))
    return replace(audit, reduced=sum_up(own), reduction=found)


def _write(audit: Audit, source: Path, target: Path, prices: PriceList, zone: tzinfo | None) -> str:
    from compactd.cli.audit.html_page import page
    from compactd.cli.framework.output import write_file

    write_file(target, page(audit, make_encodable(source.stem), prices, zone).encode())
    return make_encodable(str(target))


def _say_no_usage(page: Page, choice: Choice) -> int:
    told = f"{one_line(make_encodable(choice.name))} reports no usage, so its cost is not known"
    if page.is_json:
        page.json({"requests": 0, "unknown": [f"{told}."], **choice.facts})
    else:
        page.line(told)
    return NOTHING_TO_DO


def _run_all(options: Options, page: Page) -> int:
    from compactd.cli.agent_files import places
    from compactd.cli.audit.all_sessions import (
        all_fields,
        read_all,
        read_losses,
        show_all,
        show_losses,
        show_unknown,
    )
    from compactd.cli.usage.prices import PriceList
    from compactd.cli.usage.reductions import read_reductions, reduction_fields, reduction_lines, sum_up

    for name, is_given in (
        ("FILE", options.file is not None),
        ("--pick", options.pick),
        ("--html", options.html is not None),
    ):
        if is_given:
            raise CommandError(
                f"{name} and --all cannot be combined: {name} is about one session.", exit_code=USAGE
            )
    agents = places.AGENTS if options.agent is None else (options.agent,)
    files = places.find_files(os.environ, agents)
    if not files:
        raise nothing_found(agents, os.environ, can_name=False)
    prices = PriceList()
    with paused_gc():
        with ProgressSpinner("reading the sessions") as spinner:
            found = read_all(files, prices, spinner.set_text)
        if not page.is_json and found.sessions:
            # The user can read this while the rest is computed.
            show_all(page, found, prices)
            sys.stdout.flush()
        with ProgressSpinner("looking for what compactions lost") as spinner:
            losses, notes = read_losses(found, spinner.set_text)
    reductions = sum_up(read_reductions(os.environ), agents=() if options.agent is None else agents)
    if page.is_json:
        fields = all_fields(found, losses, [*found.notes, *notes], prices)
        page.json({**fields, "reductions": reduction_fields(reductions)})
    else:
        if not found.sessions:
            page.line("none of the session files on this machine reports tokens")
        show_losses(page, losses)
        for line in reduction_lines(reductions):
            page.line(f"tool outputs {line}")
        show_unknown(page, found)
        print_notes([*found.notes, *notes])
    return DONE if found.sessions else NOTHING_TO_DO


COMMAND = Command(
    "audit",
    Options,
    run,
    about=ABOUT,
    params=(
        SESSION_FILE,
        Flag("--all", "sum up all sessions on this machine"),
        PICK,
        AGENT,
        Option("--html", "write a web page to this file", metavar="FILE", is_file=True),
        Flag("--utc", "show times in UTC instead of local time"),
        FORCE,
    ),
    examples=(
        ("compactd audit", "the newest session of this folder's agents"),
        ("compactd audit --html audit.html", "write a page for a browser"),
        ("compactd audit d703a1a9", "the session whose id begins so, as --all shows it"),
        ("compactd audit --all", "where the money of all sessions went"),
        ("compactd audit --json | jq .by_cause", "the rebuilds of the cache by cause, for a script"),
    ),
)
