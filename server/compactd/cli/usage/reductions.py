"""What reductions of tool outputs saved, or would have saved, by the journals of the stored sessions.

A journal only grows, unless it is written again as another file. So what was read of it is kept in compactd's
cache folder, and only new lines are read. The cache contains counts, times, and names of tools and rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from compactd.cli.usage.totals import Filters
from compactd.storage.files import make_folder, replace_users_file
from compactd.storage.paths import cache_folder, data_folder, file_stem

VERSION = b"compactd reductions 1\n"
"""The first line of the cache. Change it with every change of the structs in it."""
BLOCK_BYTES = 4_194_304
_HEADER_BYTES = 65_536
_SIGN = b'"type":"redu'
"""Every record of a reduction contains it."""


class ReducedOutput(Struct, frozen=True, array_like=True):
    """One output that was reduced, or would have been."""

    at: float
    tool: str
    tokens_before: int
    tokens_after: int
    rules: tuple[str, ...]
    is_observed: bool


class Totals(Struct):
    """Sums over outputs, in tokens."""

    count: int = 0
    tokens_before: int = 0
    tokens_after: int = 0

    def add(self, before: int, after: int) -> None:
        """Count one output."""
        self.count += 1
        self.tokens_before += before
        self.tokens_after += after

    @property
    def saved_share(self) -> float:
        """Which share of the tokens was saved, 0 to 1."""
        return 1 - self.tokens_after / self.tokens_before if self.tokens_before else 0.0


class Reductions(Struct):
    """What reductions saved."""

    done: Totals = msgspec.field(default_factory=Totals)
    observed: Totals = msgspec.field(default_factory=Totals)
    by_tool: dict[str, Totals] = {}
    """Outputs by tool, reduced and observed ones."""
    by_rule: dict[str, Totals] = {}
    """Outputs by the rules that acted. An output counts for each of its rules."""

    def add(self, output: ReducedOutput) -> None:
        """Count one output."""
        counts = [self.observed if output.is_observed else self.done]
        counts.append(self.by_tool.setdefault(output.tool, Totals()))
        counts += [self.by_rule.setdefault(rule, Totals()) for rule in output.rules]
        for one in counts:
            one.add(output.tokens_before, output.tokens_after)

    @property
    def outputs_text(self) -> str:
        """`42 outputs`: those that were reduced, whose originals are kept. If there are none, `42 observed
        outputs`."""
        count, kind = (self.done.count, "") if self.done.count else (self.observed.count, "observed ")
        return f"{count:,} {kind}{'output' if count == 1 else 'outputs'}"

    @property
    def is_empty(self) -> bool:
        """Whether nothing was reduced or observed."""
        return not self.done.count and not self.observed.count


class StoredReductions(Struct, array_like=True):
    """What is known of one journal."""

    inode: int
    read_bytes: int
    session_id: str
    outputs: list[ReducedOutput]


class _Header(Struct, frozen=True):
    id: str = ""


class _Record(Struct, frozen=True):
    at: float
    name: str
    tokens: tuple[int, str]
    tokens_shown: int
    rules: tuple[str, ...]
    type: Literal["reduced", "reduction"]


def read_reductions(environ: Mapping[str, str]) -> list[StoredReductions]:
    """Return what each journal of this machine says about reductions. Journals without any are left out, and
    those that cannot be read. O(new bytes)."""
    path = cache_folder(environ) / "reductions.msgpack"
    known = _load(path)
    found: dict[str, StoredReductions] = {}
    is_changed = False
    for journal in sorted((data_folder(environ) / "sessions").glob("*.jsonl")):
        earlier = known.get(journal.name)
        try:
            found[journal.name] = _read_journal(journal, earlier)
        except OSError:
            continue
        is_changed = is_changed or earlier is None or found[journal.name].read_bytes != earlier.read_bytes
    if is_changed or len(found) != len(known):
        _save(path, found)
    return [one for one in found.values() if one.outputs]


def count_outputs(environ: Mapping[str, str], session_ids: Iterable[str]) -> dict[str, Reductions]:
    """Return what the journals of these sessions say about reductions. Journals that cannot be read are left
    out. O(bytes of these journals that `read_reductions` has not read)."""
    known = _load(cache_folder(environ) / "reductions.msgpack")
    folder = data_folder(environ) / "sessions"
    found = {}
    for session_id in session_ids:
        journal = folder / f"{file_stem(session_id)}.jsonl"
        with suppress(OSError):
            found[session_id] = sum_up([_read_journal(journal, known.get(journal.name))])
    return found


def sum_up(
    stored: Iterable[StoredReductions], filters: Filters | None = None, agents: Sequence[str] = ()
) -> Reductions:
    """Return the sums. `agents`: only sessions of these agents; empty for all."""
    total = Reductions()
    for session in stored:
        if agents and session.session_id.partition(":")[0] not in agents:
            continue
        for output in session.outputs:
            if filters is None or _is_counted(output, filters):
                total.add(output)
    return total


def reduction_fields(found: Reductions) -> dict[str, object]:
    """Return the sums for `--json`."""
    return {
        **_fields(found.done),
        "observed": _fields(found.observed),
        "by_tool": {name: _fields(one) for name, one in sorted(found.by_tool.items())},
        "by_rule": {name: _fields(one) for name, one in sorted(found.by_rule.items())},
    }


def reduction_lines(found: Reductions) -> list[str]:
    """Return what people read about reductions: at most two lines."""
    lines = []
    if found.done.count:
        lines.append(f"reduced before they entered a context: {totals_text(found.done)}")
    if found.observed.count:
        lines.append(f"only observed, not reduced: {totals_text(found.observed)}")
    return lines


def totals_text(totals: Totals) -> str:
    """Return `12 outputs, 34,000 → 12,000 tokens (65 % less)`."""
    outputs = f"{totals.count:,} {'output' if totals.count == 1 else 'outputs'}"
    sizes = f"{totals.tokens_before:,} → {totals.tokens_after:,} tokens"
    return f"{outputs}, {sizes} ({100 * totals.saved_share:.0f} % less)"


def _fields(totals: Totals) -> dict[str, int]:
    return msgspec.structs.asdict(totals)


def _is_counted(output: ReducedOutput, filters: Filters) -> bool:
    day = datetime.fromtimestamp(output.at, filters.zone).strftime("%Y-%m-%d")
    return not (filters.since and day < filters.since) and not (filters.until and day > filters.until)


def _read_journal(path: Path, earlier: StoredReductions | None) -> StoredReductions:
    """Return what a journal says, if it is not read to its end yet. Raise `OSError`. O(new bytes)."""
    stat = path.stat()
    if earlier is not None and earlier.inode == stat.st_ino and earlier.read_bytes <= stat.st_size:
        known = earlier
    else:
        known = StoredReductions(inode=stat.st_ino, read_bytes=0, session_id="", outputs=[])
    if known.read_bytes == stat.st_size:
        return known
    with path.open("rb", buffering=0) as file:
        if not known.read_bytes:
            known.session_id = _session_id(file.read(_HEADER_BYTES))
        file.seek(known.read_bytes)
        rest = b""
        outputs = list(known.outputs)
        read_bytes = known.read_bytes
        while block := file.read(BLOCK_BYTES):
            data = rest + block
            end = data.rfind(b"\n") + 1
            outputs += _outputs_in(data, end)
            read_bytes += end
            rest = data[end:]
    return StoredReductions(
        inode=stat.st_ino, read_bytes=read_bytes, session_id=known.session_id, outputs=outputs
    )


def _outputs_in(data: bytes, end: int) -> list[ReducedOutput]:
    """Return the outputs in the whole lines `data[:end]`."""
    found = []
    at = data.find(_SIGN, 0, end)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        stop = data.find(b"\n", at, end)
        # A message may contain the sign, too.
        with suppress(msgspec.MsgspecError):
            record = msgspec.json.decode(memoryview(data)[start:stop], type=_Record)
            found.append(
                ReducedOutput(
                    at=record.at,
                    tool=record.name,
                    tokens_before=record.tokens[0],
                    tokens_after=record.tokens_shown,
                    rules=record.rules,
                    is_observed=record.type == "reduction",
                )
            )
        at = data.find(_SIGN, stop, end)
    return found


def _session_id(head: bytes) -> str:
    try:
        return msgspec.json.decode(head.partition(b"\n")[0], type=_Header).id
    except (msgspec.MsgspecError, UnicodeError):
        return ""


def _load(path: Path) -> dict[str, StoredReductions]:
    try:
        data = path.read_bytes()
        if not data.startswith(VERSION):
            return {}
        return msgspec.msgpack.decode(data[len(VERSION) :], type=dict[str, StoredReductions])
    except (OSError, msgspec.MsgspecError):
        return {}


def _save(path: Path, found: Mapping[str, StoredReductions]) -> None:
    """Write the cache. If that fails, the next run reads the journals again."""
    try:
        make_folder(path.parent)
        replace_users_file(path, VERSION + msgspec.msgpack.encode(found))
    except OSError:
        return
