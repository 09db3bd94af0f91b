"""The methods that `extract` is compared with: what other programs do, and simple rules.

Each makes one text of at most `budget` tokens from a past. Messages are counted one by one, plus one token
for each line end between them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence

from msgspec.structs import replace

from benchmarks.retention.atoms import Atom, Atoms, bare_path
from benchmarks.retention.points import Cut, count
from benchmarks.retention.records import Record, path_of
from compactd.models.tokenizers.counters import load

LEAST_CLIPPED = 30
"""Tokens. If less than this of a message fits, it is dropped."""

HEAD_DIVISOR = 4
"""The first request may take the budget divided by this."""

KEPT_OUTPUTS = 10
MASKED = "[observation omitted]"
CLEARED = "[Old tool result content cleared]"
"""Literal: docs/specs-evmts-opencode.md, "opencode.md", "Prune"."""

CHANGING = frozenset(("edit", "write", "multiedit"))


def first_tokens(text: str, tokens: int) -> str:
    """Return at most `tokens` tokens from the beginning of `text`."""
    return load("o200k_base").decode(load("o200k_base").encode_ordinary(text)[: max(0, tokens)])


def last_tokens(text: str, tokens: int) -> str:
    """Return at most `tokens` tokens from the end of `text`."""
    return load("o200k_base").decode(load("o200k_base").encode_ordinary(text)[-tokens:] if tokens > 0 else [])


def newest(records: Sequence[Record], budget: int, sizes: Sequence[int] | None = None) -> str:
    """The last messages that fit; of the next one the end."""
    shown: list[str] = []
    left = budget
    for at in range(len(records) - 1, -1, -1):
        text = records[at].rendered
        cost = (count(text) if sizes is None else sizes[at]) + 1
        if cost > left:
            if left > LEAST_CLIPPED:
                shown.append(last_tokens(text, left - 1))
            break
        shown.append(text)
        left -= cost
    return "\n".join(reversed(shown))


def keep_last(cut: Cut, budget: int) -> str:
    """The newest messages."""
    return newest(cut.past, budget, cut.sizes)


def pi_tail_files(cut: Cut, budget: int) -> str:
    """pi's: lists of the files read and modified, then the newest messages."""
    read: set[str] = set()
    modified: set[str] = set()
    for record in cut.past:
        for call in record.calls:
            path = path_of(call)
            if path is not None:
                paths = modified if call.name.lower() in CHANGING else read
                paths.add(bare_path(path, cut.folder))
    lists = "\n".join(
        "\n".join((f"<{tag}>", "\n".join(sorted(paths)), f"</{tag}>"))
        for tag, paths in (("read-files", read - modified), ("modified-files", modified))
    )
    return lists + "\n" + newest(cut.past, budget - count(lists) - 1, cut.sizes)


def head_tail(cut: Cut, budget: int) -> str:
    """The first request, then the newest messages, itself again where there is room for all."""
    first = next((at for at, record in enumerate(cut.past) if record.role == "user"), None)
    if first is None:
        return keep_last(cut, budget)
    head = first_tokens(cut.past[first].rendered, budget // HEAD_DIVISOR)
    return head + "\n" + newest(cut.past, budget - count(head) - 1, cut.sizes)


def obs_mask10(cut: Cut, budget: int) -> str:
    """The newest ten tool outputs stay, older ones are masked; then the newest messages."""
    outputs = [at for at, record in enumerate(cut.past) if record.role == "tool"]
    return newest(_stubbed(cut.past, outputs[:-KEPT_OUTPUTS], MASKED), budget)


def _stubbed(records: Sequence[Record], outputs: Collection[int], stub: str) -> list[Record]:
    gone = set(outputs)
    return [replace(record, text=stub) if at in gone else record for at, record in enumerate(records)]


def uniform_trunc(cut: Cut, budget: int) -> str:
    """Every message cut to the same number of characters, the largest that fits."""
    texts = [record.rendered for record in cut.past]
    low, high = 0, max(map(len, texts))
    while low < high:
        middle = (low + high + 1) // 2
        tokens = sum(
            (count(text[:middle]) if middle < len(text) else size) + 1
            for text, size in zip(texts, cut.sizes, strict=True)
        )
        if tokens <= budget:
            low = middle
        else:
            high = middle - 1
    return "\n".join(text[:low] for text in texts)


def opencode_prune(cut: Cut, budget: int) -> str:
    """OpenCode's: all tool output cleared but the newest that fits; then the newest messages."""
    outputs = [at for at, record in enumerate(cut.past) if record.role == "tool"]
    shown = _stubbed(cut.past, outputs, CLEARED)
    used = sum(count(record.rendered) + 1 for record in shown)
    if used <= budget:
        for at in reversed(outputs):
            used += count(cut.past[at].text)
            if used > budget:
                break
            shown[at] = cut.past[at]
    return newest(shown, budget)


def identifiers(cut: Cut, budget: int) -> str:
    """The cheat: every atom by how often messages show it, then as they first stand; nothing around it."""
    atoms = Atoms(cut.folder)
    shown: Counter[Atom] = Counter()
    for record in cut.past:
        for text in (record.text, record.given):
            shown.update(sorted(atoms(text), key=lambda atom: (text.find(atom[1]), atom)))
    ranked = (atom[1] for atom, _ in shown.most_common() if atom not in cut.common)
    return first_tokens(" ".join(ranked), budget)


def recorded_summary(cut: Cut, budget: int) -> str:
    """Return the summary that the session's own model wrote at the recorded compaction."""
    return first_tokens(cut.summary, budget)


Method = Callable[[Cut, int], str]

PLAIN: dict[str, Method] = {
    "keep_last": keep_last,
    "pi_tail_files": pi_tail_files,
    "head_tail": head_tail,
    "obs_mask10": obs_mask10,
    "uniform_trunc": uniform_trunc,
    "opencode_prune": opencode_prune,
    "iddump": identifiers,
}
"""The methods, by their names in the shared figures."""
