"""Collects the native windows of open weights: what a model supports, no matter who serves it.

xinference lists families with their sizes; models.dev marks rows of open weights at their hosts. A family
becomes one row of the provider `open-weights` for each of its windows. `id` is the family's name as
`core/models/open_weights.py` parses any spelling of it; `sizes` are the existing sizes. A size that does not
exist finds no row.
"""

from __future__ import annotations

import json
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

from registry_sources import Known

from compactd.core.models.names import tokenizer_of
from compactd.core.models.open_weights import OPEN_WEIGHTS, weights_of
from compactd.core.models.rows import ModelRow

FOLDER = "xinference/model/llm/models/"

AGREE = 0.06
"""Windows that differ by at most this share are the same window, rounded."""

ORDER = ("xinference", "models.dev", "litellm", "tokencost")

FAR = 4
"""How many times larger than its hosts' windows a native window may be."""

Sizes = dict[str | None, int]
"""Size -> native window. None is the family's name without a size."""

Hosts = dict[str, dict[str | None, dict[str, tuple[int, str]]]]
"""Stem -> size -> host -> (window, the list that states it)."""


def xinference(wheel: Path) -> dict[str, Sizes]:
    """Returns the sizes of each stem. A size in an id is used; otherwise the family's size in billions."""
    families: dict[str, Sizes] = defaultdict(dict)
    with zipfile.ZipFile(wheel) as archive:
        names = sorted(
            name for name in archive.namelist() if name.startswith(FOLDER) and name.endswith(".json")
        )
        for name in names:
            for family in json.loads(archive.read(name)):
                window = family["context_length"]
                for spec in family["model_specs"]:
                    billions = str(spec["model_size_in_billions"]).replace("_", ".")
                    for source in spec["model_src"].values():
                        weights = weights_of(source["model_id"].replace("{quantization}", ""))
                        sizes = families[weights.stem]
                        for size in {weights.size} if weights.size else {None, f"{billions}b"}:
                            sizes[size] = min(window, sizes.get(size, window))
    return dict(families)


def hosted(lists: dict[str, list[Known]]) -> Hosts:
    """Returns stem -> size -> host -> (the host's window for open weights, the list that states it).

    It uses rows that models.dev marks as open weights, and rows of any list whose name has a size. If lists
    differ, the larger window is used.
    """
    seen: Hosts = defaultdict(lambda: defaultdict(dict))
    for source, rows in lists.items():
        for row in rows:
            if row.context < 1024 or row.id.endswith(":free") or "@" in row.id:
                continue
            weights = weights_of(row.id)
            if weights.stem and (row.open_weights or weights.size):
                windows = seen[weights.stem][weights.size]
                if row.provider not in windows or row.context > windows[row.provider][0]:
                    windows[row.provider] = (row.context, source.removesuffix(" before"))
    return seen


def usual(windows: list[int]) -> int:
    """Returns the most common window; windows that are equal after rounding count together. The smaller one
    of two.
    """
    counts = Counter(windows)
    alike = {
        one: sum(n for other, n in counts.items() if one * (1 - AGREE) <= other <= one) for one in counts
    }
    top = min(alike, key=lambda one: (-alike[one], one))
    group = [one for one in counts if top * (1 - AGREE) <= one <= top]
    return min(group, key=lambda one: (-counts[one], one))


def saying(window: int, pairs: list[tuple[int, str]]) -> set[str]:
    """Returns the lists that state `window`, rounded."""
    return {source for other, source in pairs if abs(other - window) <= AGREE * window}


def families(native: dict[str, Sizes], hosts: Hosts) -> list[ModelRow]:
    """Returns the rows of `OPEN_WEIGHTS`.

    Hosts often offer a smaller window than a model supports. But if two or more all offer less than a
    quarter, the largest of theirs is used instead of the native window, and the row is disputed. (For Mistral
    Nemo, xinference has 1,024,000, like its configuration; its makers and hosts say 128,000.) Families that
    only hosts know need two of them, and get their usual window, disputed unless all agree.
    """
    found: list[ModelRow] = []
    for stem in sorted({*native, *hosts}):
        by_window: dict[tuple[int, bool], list[tuple[str | None, set[str]]]] = defaultdict(list)
        for size in sorted({*native.get(stem, {}), *hosts.get(stem, {})}, key=str):
            of_stem = hosts.get(stem, {})
            # A host's id without a size is for the whole family.
            pairs = [*of_stem.get(size, {}).values(), *(of_stem.get(None, {}).values() if size else ())]
            windows = [window for window, _ in pairs]
            told = native.get(stem, {}).get(size)
            if told is not None:
                most = max(windows, default=told)
                dispute = len(windows) > 1 and most < told / FAR
                window = most if dispute else told
                by_window[window, dispute].append((size, {"xinference", *saying(window, pairs)}))
            elif len(windows) > 1:
                window = usual(windows)
                dispute = min(windows) < max(windows) * (1 - AGREE)
                by_window[window, dispute].append((size, saying(window, pairs)))
        for (window, dispute), sizes in by_window.items():
            told_by = {source for _, src in sizes for source in src}
            found.append(
                ModelRow(
                    provider=OPEN_WEIGHTS,
                    id=stem if len(by_window) == 1 else f"{stem}@{window}{'-disputed' if dispute else ''}",
                    context=window,
                    tokenizer=tokenizer_of(stem),
                    sizes=tuple(size or "" for size, _ in sizes),
                    src=tuple(source for source in ORDER if source in told_by),
                    disputed=dispute,
                )
            )
    return found
