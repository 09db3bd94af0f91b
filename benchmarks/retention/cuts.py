"""The cuts at which a compaction is judged: recorded sessions split into a past and a known future.

The judge (`probe.py`, which defines atoms, probes and scores) is not part of this project. It is imported
from the folder that `--tools` names. What it computes for a cut does not depend on the compaction under test,
so the result is cached in a file for the next run.
"""

from __future__ import annotations

import collections
import hashlib
import importlib
import itertools
import json
import pickle
import sys
from pathlib import Path
from typing import NamedTuple

SHARES = (0.5, 0.75)
MIN_STRETCH, MIN_PAST, MIN_FUTURE = 20_000, 12_000, 3_000
CHARS_A_TOKEN = 3.6


class Cut(NamedTuple):
    """A recorded session, cut into a past and a future, with its probes and sizes."""

    session: str
    cwd: str
    past: list[dict]
    """Messages in the neutral form of the judge's own `normalise.py`."""
    probes: tuple
    full: set
    agent: bytes
    observed: bytes
    bits_nothing: int
    bits_past: int
    future: list[dict]


def judge(tools: Path):
    """Import the module that defines the metric, from the folder `tools`."""
    sys.path.insert(0, str(tools))
    module = importlib.import_module("probe")
    module.ntok = lambda s: len(s) // 4
    return module


def normalised(data: Path, cache: Path) -> list[Path]:
    """The sessions of `data` in the judge's neutral form."""
    normalise = importlib.import_module("normalise").normalise
    cache.mkdir(parents=True, exist_ok=True)
    for row in json.loads((data / "sessions" / "MANIFEST.json").read_text("utf-8")):
        to = cache / f"{row['name']}.jsonl"
        raw = data / "sessions" / row["file"]
        if raw.exists() and not to.exists():
            head = {"type": "session", "name": row["name"], "format": row["format"]}
            lines = [head, *normalise(str(raw), row["format"])]
            to.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    names = {row.stem for row in cache.glob("*.jsonl")}
    more = [path for path in (data / "more").glob("*.jsonl") if path.stem not in names]
    return sorted([*cache.glob("*.jsonl"), *more], key=lambda path: path.name)


def working_dir(messages: list[dict]) -> str:
    """The longest folder that holds at least 80 % of the absolute paths given to tools."""
    seen: collections.Counter = collections.Counter()
    for message in messages:
        for call in message.get("tool_calls", []):
            arguments = call.get("arguments", {})
            path = arguments.get("path") or arguments.get("file_path")
            if isinstance(path, str) and path.startswith("/"):
                parts = path.split("/")
                for k in range(3, len(parts)):
                    seen["/".join(parts[:k])] += 1
    if not seen:
        return ""
    most = max(seen.values())
    return max((k for k, v in seen.items() if v >= 0.8 * most), key=len)


def group(name: str) -> str:
    """Return the name of the source that recorded a session."""
    return "entire" if name.startswith("entire") else name.split("-")[0]


def commonplace(probe, files: list[Path]) -> set:
    """Return the atoms that occur in three or more unrelated sources; they are too common to be probes."""
    where = collections.defaultdict(set)
    for file in files:
        head, messages = probe.load(str(file))
        mine: set = set()
        for m in messages:
            mine |= probe.atoms(m.get("text", "")) | probe.atoms(probe.calls_plain(m))
        for a in mine:
            where[a].add(group(head["name"]))
    return {a for a, groups in where.items() if len(groups) >= 3}


def stretches(starts: list[int], end: int) -> list[tuple[int, int]]:
    """The parts of a session between recorded compactions."""
    return list(itertools.pairwise([0, *starts, end]))


def cut_at(messages: list[dict], size: list[float], low: int, high: int, share: float) -> int:
    """Return the index that has `share` of a stretch's tokens before it, moved forward past tool results."""
    wanted, so_far, at = share * sum(size[low:high]), 0.0, low
    for at in range(low, high):
        so_far += size[at]
        if so_far >= wanted:
            break
    at += 1
    while at < high and messages[at]["role"] == "tool":
        at += 1
    return at


def cuts_of(probe, file: Path) -> list[Cut]:
    """The cuts of one session: at 50 % and 75 % of every stretch between recorded compactions."""
    head, messages = probe.load(str(file))
    if head["name"].startswith("aider"):
        return []
    cwd = working_dir(messages)
    size = [len(probe.render(m)) / CHARS_A_TOKEN for m in messages]
    starts = [i for i, m in enumerate(messages) if m.get("kind") == "compaction_summary"]
    cuts = []
    for low, high in stretches(starts, len(messages)):
        if sum(size[low:high]) < MIN_STRETCH:
            continue
        for share in SHARES:
            at = cut_at(messages, size, low, high, share)
            if high - at < 6 or sum(size[low:at]) < MIN_PAST or sum(size[at:high]) < MIN_FUTURE:
                continue
            past, future = messages[low:at], messages[at:high]
            probes = probe.build(past, future, cwd)
            if len(probes[0]) < 8:
                continue
            text = "\n".join(probe.render(m) for m in past)
            full = probe.judge(probes, text, cwd)
            agent, observed = probe.agent_obs(future)
            cuts.append(
                Cut(
                    head["name"],
                    cwd,
                    past,
                    probes,
                    full,
                    agent,
                    observed,
                    probe.cond_bits("", agent, observed),
                    probe.cond_bits(text, agent, observed),
                    future,
                )
            )
    return cuts


def cached_cuts(probe, file: Path, common: set, cache: Path) -> list[Cut]:
    """`cuts_of`, read back from `cache` where the same session was cut under the same commonplace atoms."""
    probe.COMMON.clear()
    probe.COMMON.update(common)
    key = hashlib.sha256(file.read_bytes() + repr(sorted(common)).encode()).hexdigest()[:24]
    kept = cache / f"{key}.pickle"
    if kept.exists():
        return [Cut(*row) for row in pickle.loads(kept.read_bytes())]
    cuts = cuts_of(probe, file)
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(pickle.dumps([tuple(c) for c in cuts]))
    return cuts
