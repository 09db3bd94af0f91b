"""`compactd usage`: tokens and cost of the agents' sessions, by day, project, agent or model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, one_line, plural, print_notes
from compactd.cli.usage import dates

if TYPE_CHECKING:
    from datetime import tzinfo

    from compactd.cli.usage.prices import PriceList
    from compactd.cli.usage.reductions import Reductions
    from compactd.cli.usage.requests import FileUsage
    from compactd.cli.usage.totals import Filters, Report, Sum

ABOUT = """\
Shows how many tokens the agents on this machine used, how much of the input came from
the cache, and what that costs at list prices. It reads all session files that `compactd`
finds on this machine, or those given as FILE, also of aider. Each request to a model
counts once, even if several files contain it.

Days are those of the local time zone. `input` excludes the cache. `cached` is the share
of all input that was read from the cache. A cost is what the session file reports
(marked *), or else computed from the prices in compactd's model registry. With a
subscription, you do not pay this cost.

If tool outputs were reduced before they entered a context, or if that was only observed,
it also shows what that saved, or would have saved, in the sessions that compactd stores.
"""

DIMENSIONS = ("day", "month", "project", "agent", "model", "session")
AGENTS = ("claude-code", "codex", "gemini-cli", "pi", "opencode", "cline", "aider")


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    files: tuple[str, ...]
    by: tuple[tuple[str, ...], ...]
    since: str | None
    until: str | None
    agent: tuple[str, ...]
    model: tuple[str, ...]
    utc: bool


def read_by(text: str) -> tuple[str, ...]:
    """Return the dimensions in a text such as `day,model`. Raise `ValueError` with a message for the user."""
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if name not in DIMENSIONS:
            raise ValueError(f"{name!r} is not one of {', '.join(DIMENSIONS)}")
    return names


def run(options: Options, page: Page) -> int:
    """Read the session files and print the table."""
    from datetime import UTC, datetime

    from compactd.cli.usage.collect import count_once
    from compactd.cli.usage.prices import PriceList
    from compactd.cli.usage.reductions import reduction_lines
    from compactd.cli.usage.totals import Filters, report

    zone = UTC if options.utc else None
    today = datetime.now(zone).date()
    filters = Filters(
        since=None if options.since is None else dates.day_of(options.since, today),
        until=None if options.until is None else dates.day_of(options.until, today),
        models=options.model,
        zone=zone,
    )
    if filters.since and filters.until and filters.since > filters.until:
        raise CommandError(
            f"--since {filters.since} is after --until {filters.until}.",
            hint="Swap them, or leave one out.",
            exit_code=USAGE,
        )
    reductions = _reductions(options, filters)
    files, notes = _given(options) if options.files else _found(options)
    prices = PriceList()
    by = tuple(dict.fromkeys(name for names in options.by for name in names)) or ("day",)
    found = report(count_once(files), by, filters, prices)
    if page.is_json:
        _print_json(page, found, filters, files, notes, prices, reductions)
    elif found.total.requests:
        _show(page, found, files, notes, prices, zone, reductions)
    else:
        _say_nothing_found(page, options, files, notes)
        for line in [] if reductions is None else reduction_lines(reductions):
            page.line(f"tool outputs {line}")
    has_reductions = reductions is not None and not reductions.is_empty
    return DONE if found.total.requests or has_reductions else NOTHING_TO_DO


def _found(options: Options) -> tuple[Sequence[FileUsage], list[str]]:
    """Return what the session files on this machine report, and notes about files that could not be read."""
    from compactd.cli.agent_files import places
    from compactd.cli.framework.progress import ProgressSpinner
    from compactd.cli.usage.collect import collect
    from compactd.storage.paths import cache_folder

    agents = [agent for agent in places.AGENTS if not options.agent or agent in options.agent]
    found = places.find_files(os.environ, agents)
    with ProgressSpinner("reading the sessions") as spinner:
        read = collect(found, cache_folder(os.environ) / "usage.msgpack", spinner.set_text)
    return read.files, list(read.unreadable)


def _reductions(options: Options, filters: Filters) -> Reductions | None:
    """Return what reductions of tool outputs saved in the stored sessions. None if the options ask for
    something that these sessions do not say."""
    from compactd.cli.usage.reductions import read_reductions, sum_up

    if options.files or options.model:
        return None
    return sum_up(read_reductions(os.environ), filters, options.agent)


def _given(options: Options) -> tuple[Sequence[FileUsage], list[str]]:
    """Return what the files report that the user names."""
    from compactd.cli.framework.load_file import check_path, read_bytes
    from compactd.cli.usage.readers import READABLE, agent_of, read_data

    files: list[FileUsage] = []
    for name in dict.fromkeys(options.files):
        path = check_path(name)
        data = read_bytes(path)
        agent = agent_of(data)
        if agent is None or agent not in READABLE:
            raise CommandError(
                f"cannot read the usage in {name}: it is no session file of {', '.join(READABLE)}.",
                hint="`compactd inspect FILE` reads the other formats that compactd knows.",
            )
        if not options.agent or agent in options.agent:
            files.append(read_data(data, agent, Path(name).stem))
    return files, []


def _say_nothing_found(
    page: Page, options: Options, files: Sequence[FileUsage], notes: Sequence[str]
) -> None:
    is_filtered = options.since or options.until or options.model or options.agent
    if files and is_filtered:
        page.line(
            f"no request in {plural(len(files), 'session file')} matches; leave out an option to see more"
        )
    elif files:
        page.line(f"{plural(len(files), 'session file')} read; none of them reports tokens")
    else:
        from compactd.cli.agent_files.places import AGENTS as PLACES

        page.line(f"no session files of {', '.join(options.agent or PLACES)} found on this machine")
        page.line("`compactd usage FILE` reads a file from elsewhere")
    print_notes(notes)


def _show(
    page: Page,
    found: Report,
    files: Sequence[FileUsage],
    notes: list[str],
    prices: PriceList,
    zone: tzinfo | None,
    reductions: Reductions | None,
) -> None:
    from compactd.cli.usage.reductions import reduction_lines
    from compactd.cli.usage.table import show

    total = found.total
    page.line(
        f"{plural(total.requests, 'request')} in {plural(len(total.sessions), 'session')}, "
        f"{_span(total, zone)}"
    )
    page.line()
    show(page, found)
    page.line()
    if total.cost_usd is not None and total.cost_reports < total.requests:
        page.line(f"cost at list prices: compactd's registry ({prices.source}), {prices.as_of}")
    if total.cost_reports:
        page.line(f"* the session files report ${total.reported_usd:,.2f} of the cost themselves")
    if found.unpriced:
        names = ", ".join(one_line(name) for name, _ in found.unpriced[:3])
        more = f" and {len(found.unpriced) - 3:,} more" if len(found.unpriced) > 3 else ""
        sign = "+ " if total.cost_usd is not None else ""
        page.line(
            f"{sign}no price is known for {total.unpriced_tokens:,} tokens of {names}{more}; "
            "the cost leaves them out",
            "due",
        )
    from compactd.cli.agent_files.places import TITLES

    silent = sorted({file.agent for file in files if file.not_reported and file.agent in total.agents})
    if silent:
        names = ", ".join(TITLES.get(agent, agent) for agent in silent)
        page.line(f"cache writes are not reported by {names}")
    lines = [] if reductions is None else reduction_lines(reductions)
    if lines:
        page.line()
        page.line("tool outputs")
        for line in lines:
            page.row("-", line, columns=2)
    print_notes([*_notes(found, files), *notes])


def _notes(found: Report, files: Sequence[FileUsage]) -> list[str]:
    """Return what the table leaves out."""
    notes = []
    damaged = sum(file.unreadable for file in files)
    if damaged:
        notes.append(f"{plural(damaged, 'damaged line')} with a usage report left out")
    if found.undated:
        notes.append(f"{plural(found.undated, 'request')} without a time left out")
    return notes


def _span(total: Sum, zone: tzinfo | None) -> str:
    """Return the first and last day, with the time zone of days."""
    from datetime import datetime

    if not total.last_at:
        return "without dates"
    first, last = (
        datetime.fromtimestamp(at, zone).strftime("%Y-%m-%d")
        for at in (total.first_at or total.last_at, total.last_at)
    )
    name = "UTC" if zone is not None else "local time"
    return f"{first} ({name})" if first == last else f"{first} to {last} ({name})"


def _print_json(
    page: Page,
    found: Report,
    filters: Filters,
    files: Sequence[FileUsage],
    notes: list[str],
    prices: PriceList,
    reductions: Reductions | None,
) -> None:
    from compactd.cli.usage.reductions import reduction_fields

    page.json(
        {
            "by": found.by,
            "since": filters.since,
            "until": filters.until,
            "time_zone": "UTC" if filters.zone is not None else "local",
            "rows": [
                {**dict(zip(found.by, key, strict=True)), **_sum_fields(one)} for key, one in found.rows
            ],
            "total": _sum_fields(found.total),
            "unpriced": [{"model": model, "tokens": tokens} for model, tokens in found.unpriced],
            "prices": {"source": prices.source, "as_of": prices.as_of},
            "reductions": None if reductions is None else reduction_fields(reductions),
            "files": {
                "read": len(files),
                "without_usage": sum(not file.requests for file in files),
            },
            "notes": [*_notes(found, files), *notes],
        }
    )


def _sum_fields(one: Sum) -> dict[str, object]:
    return {
        "requests": one.requests,
        "input_tokens": one.input,
        "output_tokens": one.output,
        "cache_write_tokens": one.cache_write if one.cache_write_is_reported else None,
        "cache_write_1h_tokens": one.cache_write_1h if one.cache_write_is_reported else None,
        "cache_read_tokens": one.cache_read,
        "total_tokens": one.total,
        "cached_share": one.cached_share,
        "cost_usd": one.cost_usd,
        "reported_cost_usd": one.reported_usd if one.cost_reports else None,
        "unpriced_tokens": one.unpriced_tokens,
        "first_at": one.first_at or None,
        "last_at": one.last_at or None,
        "agents": sorted(one.agents),
        "projects": sorted(one.projects),
        "models": sorted(one.models),
        "sessions": len(one.sessions),
    }


COMMAND = Command(
    "usage",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "files",
            "session files; without one, all of the agents on this machine",
            metavar="FILE",
            required=False,
            is_many=True,
            is_file=True,
        ),
        Option(
            "--by",
            f"one row for each {', '.join(DIMENSIONS[:-1])} or {DIMENSIONS[-1]} (day); several with commas",
            metavar="WHAT",
            read=read_by,
            is_many=True,
            completed=lambda begin: [(name, "") for name in DIMENSIONS if name.startswith(begin)],
        ),
        Option("--since", "first day: a date, or a time span (7d, 4w)", metavar="DAY", read=dates.check),
        Option("--until", "last day, inclusive", metavar="DAY", read=dates.check),
        Option("--agent", "count only this agent; may be repeated", choices=AGENTS, is_many=True),
        Option("--model", "count only models with this in their name", metavar="NAME", is_many=True),
        Flag("--utc", "use days in UTC instead of local time"),
    ),
    examples=(
        ("compactd usage --since 7d", "the last seven days, a row for each"),
        ("compactd usage --by month,model", "each month, by model"),
        ("compactd usage --by project --agent codex", "which projects Codex worked for most"),
    ),
    is_paged=True,
)
