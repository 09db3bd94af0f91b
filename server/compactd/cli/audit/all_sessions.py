"""`compactd audit --all`: the bills of all sessions on this machine, and their rebuilds of the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from compactd.cli.agent_files.places import AgentFile
from compactd.cli.audit.bill import AuditedRebuild, Bill, CompactionSize, bill_of, by_cause, sum_or_none
from compactd.cli.audit.losses import Loss, losses_of
from compactd.cli.audit.render import table
from compactd.cli.audit.replay import ASSUMPTIONS, POLICY, NoReplay, Replay, replay
from compactd.cli.audit.result import Json, bill_fields, cause_fields, loss_sums, policy_fields
from compactd.cli.audit.rows import (
    CAUSE_TEXTS,
    after_prompts_text,
    dollars,
    losses_text,
    policy_text,
    share_text,
)
from compactd.cli.audit.trail import MAIN, Trail, read_trail
from compactd.cli.framework.exit_codes import CommandError
from compactd.cli.framework.load_file import read_bytes
from compactd.cli.framework.page import Page, one_line, plural
from compactd.cli.usage.collect import count_once, reading_order
from compactd.cli.usage.prices import PriceList
from compactd.cli.usage.readers import empty_usage, source_of
from compactd.cli.usage.table import cost_text
from compactd.cli.usage.totals import Sum
from compactd.protocol.errors import CompactdError

ID_CHARS = 8
MAX_PROJECT_CHARS = 20
MAX_SESSIONS = 20
"""How many sessions are listed: those whose rebuilds cost most."""


MAX_UNKNOWN = 10
"""How many sentences about what the files do not say are shown."""


class AuditedSession(Struct, frozen=True, kw_only=True):
    """A session file that reports usage."""

    path: Path
    bill: Bill
    policy: Replay | NoReplay
    """The estimate, which includes requests that count for another file too."""


class AllSessions(Struct, frozen=True, kw_only=True):
    """Several session files. Each request counts in the bill of one of them."""

    sessions: tuple[AuditedSession, ...]
    notes: tuple[str, ...]

    @property
    def bills(self) -> list[Bill]:
        """The bills of all files."""
        return [one.bill for one in self.sessions]

    @property
    def policy(self) -> Replay | None:
        """The sums of the estimates; None if there is none."""
        known = [one.policy for one in self.sessions if isinstance(one.policy, Replay)]
        if not known:
            return None
        return Replay(
            recorded_usd=sum(one.recorded_usd for one in known),
            estimate_usd=sum(one.estimate_usd for one in known),
            requests=sum(one.requests for one in known),
            compactions=sum(one.compactions for one in known),
            recorded_compactions=sum(one.recorded_compactions for one in known),
            side_requests=sum(one.side_requests for one in known),
        )

    @property
    def total(self) -> Sum:
        """The sums of all files, as `compactd usage` computes them."""
        total = Sum()
        for bill in self.bills:
            total.add(bill.total)
        return total

    @property
    def rebuilds(self) -> list[AuditedRebuild]:
        """The rebuilds of all files."""
        return [one for bill in self.bills for one in bill.rebuilds]

    @property
    def rewritten_share(self) -> float | None:
        """Which share of all tokens that were written to the cache was written again, over the files that
        report writes; None if none does."""
        own = [bill for bill in self.bills if bill.rewritten_share is not None]
        written = sum(bill.total.cache_write for bill in own)
        return sum(bill.rebuilt_tokens for bill in own) / written if written else None


def read_all(files: Sequence[AgentFile], prices: PriceList, told: Callable[[str], None]) -> AllSessions:
    """Return the bills of session files. `told` is called with the progress. O(bytes)."""
    trails: list[tuple[AgentFile, Path, Trail]] = []
    notes: list[str] = []
    for number, file in enumerate(files, start=1):
        told(f"reading session {number:,} of {len(files):,}")
        path = source_of(file.path, file.agent)
        try:
            data = read_bytes(path)
        except CommandError as error:
            notes.append(error.message.rstrip("."))
            continue
        trails.append((file, path, read_trail(data, empty_usage(path, file.agent))))
    trails.sort(key=lambda one: reading_order(one[0], one[2].usage))
    counted = count_once(trail.usage for _, _, trail in trails)
    sessions = [
        AuditedSession(path=path, bill=bill_of(trail, prices, requests), policy=replay(trail, prices))
        for (_, path, trail), (_, requests) in zip(trails, counted, strict=True)
    ]
    found = tuple(one for one in sessions if one.bill.total.requests)
    return AllSessions(sessions=found, notes=tuple(notes))


def read_losses(found: AllSessions, told: Callable[[str], None]) -> tuple[list[Loss], list[str]]:
    """Return (what each compaction in these sessions lost, notes about files that could not be read). `told`
    is called with the progress. O(length of the texts)."""
    compacted = [one for one in found.sessions if any(_is_compaction(size) for size in one.bill.compactions)]
    losses: list[Loss] = []
    notes: list[str] = []
    for number, one in enumerate(compacted, start=1):
        told(f"looking for what compactions lost: session {number:,} of {len(compacted):,}")
        try:
            losses += losses_of(read_bytes(one.path), one.bill.agent, one.bill.project)
        except (CommandError, CompactdError) as error:
            notes.append(f"what compactions lost in {one.path} is not known: {error.message.rstrip('.')}")
    return losses, notes


def _is_compaction(size: CompactionSize) -> bool:
    return size.boundary.kind == "compaction" and size.boundary.chain == MAIN


def all_fields(found: AllSessions, losses: Sequence[Loss], notes: Sequence[str], prices: PriceList) -> Json:
    """Return everything for `--json`."""
    total, rebuilds = found.total, found.rebuilds
    return {
        "sessions": [bill_fields(bill) for bill in found.bills],
        "total": {
            "sessions": len(total.sessions),
            "requests": total.requests,
            "tokens": total.total,
            "cost_usd": total.cost_usd,
            "unpriced_tokens": total.unpriced_tokens,
            "cached_share": total.cached_share,
            "rebuilds": len(rebuilds),
            "rebuilt_tokens": sum(one.tokens for one in rebuilds),
            "rebuilt_cost_usd": sum_or_none([one.cost_usd for one in rebuilds]),
            "rewritten_share": found.rewritten_share,
            "by_cause": cause_fields(by_cause(rebuilds)),
        },
        "lost": {"compactions": len(losses), **loss_sums(losses)},
        "policy": None if found.policy is None else policy_fields(found.policy),
        "prices": {"source": prices.source, "as_of": prices.as_of},
        "notes": list(notes),
    }


def show_all(page: Page, found: AllSessions, prices: PriceList) -> None:
    """Print the sums by cause, the sessions whose rebuilds cost most, and the estimate."""
    total, rebuilds = found.total, found.rebuilds
    page.line(
        f"{plural(total.requests, 'request')} in {plural(len(total.sessions), 'session')} for"
        f" {cost_text(total)}; {share_text(total.cached_share)} of the input came from the cache"
    )
    page.line(f"cost at list prices: compactd's registry ({prices.source}), {prices.as_of}")
    if total.unpriced_tokens:
        page.line(
            f"+ no price is known for {total.unpriced_tokens:,} tokens; the cost leaves them out", "due"
        )
    page.line()
    if rebuilds:
        _show_rebuilds(page, found, rebuilds)
    else:
        page.line("no rebuild of the cache")
    if found.policy is not None:
        page.line()
        page.line(f"with compactd's policy: {policy_text(found.policy)}")
        page.row("", ASSUMPTIONS, columns=2)
        page.row("", POLICY, columns=2)


def _show_rebuilds(page: Page, found: AllSessions, rebuilds: Sequence[AuditedRebuild]) -> None:
    share = found.rewritten_share
    of = "" if share is None else f": {share_text(share)} of all tokens written to the cache"
    page.line(f"{plural(len(rebuilds), 'rebuild')} of the cache{of}")
    page.line()
    causes = [
        (CAUSE_TEXTS[one.cause], f"{one.rebuilds:,}", f"{one.tokens:,}", dollars(one.cost_usd))
        for one in by_cause(rebuilds)
    ]
    everything = sum(one.tokens for one in rebuilds)
    cost = sum_or_none([one.cost_usd for one in rebuilds])
    causes.append(("total", f"{len(rebuilds):,}", f"{everything:,}", dollars(cost)))
    table(page, [("cause", "rebuilds", "tokens", "extra cost"), *causes], "<>>>", optional=(1,))
    if told := after_prompts_text(rebuilds):
        page.line(told)
    page.line()
    ranked = sorted(found.bills, key=lambda bill: (-(bill.rebuilt_usd or 0.0), -bill.rebuilt_tokens))
    shown = [bill for bill in ranked if bill.rebuilds][:MAX_SESSIONS]
    rows: list[tuple[str, ...]] = [("session", "cost", "rebuilds", "extra cost", "main cause")]
    rows += [
        (
            _name_of(bill),
            cost_text(bill.total),
            f"{len(bill.rebuilds):,}",
            dollars(bill.rebuilt_usd),
            CAUSE_TEXTS[max(bill.causes, key=lambda one: one.tokens).cause],
        )
        for bill in shown
    ]
    table(page, rows, "<>>><", optional=(2, 4))
    if len(shown) < len(ranked):
        more = plural(len(ranked) - len(shown), "more session", "more sessions")
        page.line(f"{more} without rebuilds, or with cheaper ones")
    page.line("`compactd audit ID` shows one of them in full")


def _name_of(bill: Bill) -> str:
    """Return the beginning of a session's id, and the last folder of its project."""
    project = one_line(Path(bill.project).name)[:MAX_PROJECT_CHARS]
    return f"{one_line(bill.session_id)[:ID_CHARS]} {project}".rstrip()


def show_unknown(page: Page, found: AllSessions) -> None:
    """Print what the files do not say, the most common first."""
    counted = Counter(told for bill in found.bills for told in bill.unknown)
    if counted:
        page.line()
        page.line("what the files do not say")
    of = f"of {plural(len(found.bills), 'session')}"
    for told, count in counted.most_common(MAX_UNKNOWN):
        page.row("-", f"{told} ({count:,} {of})", columns=2)
    if len(counted) > MAX_UNKNOWN:
        page.row("-", f"and {len(counted) - MAX_UNKNOWN:,} more; --json has all", columns=2)


def show_losses(page: Page, losses: Sequence[Loss]) -> None:
    """Print what all compactions lost."""
    if losses:
        page.line()
        page.line(f"{plural(len(losses), 'compaction')}: {losses_text(losses)}")
