"""What is compared: the engine at each level, plain clipping, and a filter of shell output."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Protocol

from benchmarks.retention.atoms import SHELLS
from compactd.core.history.entries import EntryId
from compactd.core.reduce.output import LEVELS, Level, ToolOutput
from compactd.core.reduce.reduce import reduce_output
from compactd.core.reduce.shown import ShownLines

CLIPS = (2_000, 4_000, 8_000, 16_000)
"""After how many characters plain clipping cuts. Four fifths are the head, as in many agents."""


class Reducer(Protocol):
    """Reduces the outputs of one session, one after the other."""

    def __call__(self, output: ToolOutput) -> str:
        """Return what the context shows instead of an output."""
        ...


class Engine:
    """compactd's engine at one level, with what the session showed so far."""

    def __init__(self, level: Level) -> None:
        self._level: Level = level
        self._shown = ShownLines()
        self._count = 0

    def __call__(self, output: ToolOutput) -> str:
        """Return the reduced text."""
        self._count += 1
        entry_id = EntryId(f"e{2 * self._count + 1}")
        text = reduce_output(output, self._shown, entry_id, self._level).text
        self._shown.add(entry_id, ToolOutput(output.name, output.arguments, text, output.is_error))
        return text


def clip(limit: int) -> Reducer:
    """Return plain clipping: the head and the tail of what is longer than `limit` characters."""
    head = limit * 4 // 5

    def clipped(output: ToolOutput) -> str:
        text = output.text
        if len(text) <= limit:
            return text
        return f"{text[:head]}\n[{len(text) - limit} characters omitted]\n{text[head - limit :]}"

    return clipped


_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PASSED = re.compile(r"\s*(?:ok\b|PASS|✓|=== RUN|--- PASS|test \S+ \.\.\. ok|\S+::\S+ PASSED)")
_CONTEXT_OF_DIFF = re.compile(r"^ .*\n?|^index .*\n?", re.MULTILINE)
MAX_FOUND = 10
"""Of the lines that a search finds in a file, the filter keeps so many."""


def filter_shell(output: ToolOutput) -> str:
    """Return what a filter in front of the shell shows. It imitates the strategies that rtk documents: drop
    noise, group, truncate, count equal lines (mintlify.com/rtk-ai/rtk, "How it works", read 2026-11). It is
    not rtk: its rules are those that descriptions name. It sees neither file reads nor the session."""
    if output.name not in SHELLS:
        return output.text
    text = _ESCAPE.sub("", output.text)
    command = str(output.arguments.get("command") or output.arguments.get("cmd") or "")
    if "\n@@ -" in text:
        text = _CONTEXT_OF_DIFF.sub("", text)
    lines = [line for line in text.split("\n") if _PASSED.match(line) is None]
    if re.search(r"\b(?:grep|rg)\b", command):
        seen: dict[str, int] = {}
        kept = []
        for line in lines:
            file = line.partition(":")[0]
            seen[file] = seen.get(file, 0) + 1
            if seen[file] <= MAX_FOUND:
                kept.append(line)
        lines = kept
    counted = [(line, len(list(equal))) for line, equal in groupby(lines)]
    short = "\n".join(line if count == 1 else f"{line} (x{count})" for line, count in counted)
    return short if len(short) < len(output.text) else output.text


def reducers() -> dict[str, Callable[[], Reducer]]:
    """Return a maker of each reducer, by name: a session needs a new one."""
    made: dict[str, Callable[[], Reducer]] = {}
    for level in LEVELS:
        made[level] = partial(Engine, level)
    for limit in CLIPS:
        made[f"clip {limit}"] = partial(clip, limit)
    made["shell filter"] = lambda: filter_shell
    return made
