"""Scores the registry: `python benchmarks/truth/score_models.py FILE [--part seen|aside|all] [--sources]`.

Each line of FILE is a JSON object: `query{model, provider, base_url?}`, `expect{context, input, output}` or
null, `kind`. `aside.py` says which rows were seen while the look-up rules were written. Each answer is one
of: ok (the window is equal), near (93 to 100 % of it), under (less), over (more), false (for an unknown
model, a number that is presented as more than a guess), miss (for a known model, only the fallback). `cap`
compares the largest request: the input limit if there is one, otherwise the window. `--sources` also scores
the rules with the rows of one source alone, and a plain look-up of the exact id."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from aside import Row as Case
from aside import part, read_rows

from compactd.core.models.lookup import Lookup
from compactd.core.models.open_weights import OPEN_WEIGHTS
from compactd.core.models.registry import Registry
from compactd.core.models.rows import ModelRow
from compactd.models.registry_files import read_packaged

NEAR = 0.93
WORDS = ("ok", "near", "under", "over", "miss", "false")
SOURCES = (
    ("models.dev",),
    ("litellm",),
    ("xinference",),
    ("tokencost",),
    ("codex",),
    ("models.dev", "litellm"),
    ("models.dev", "litellm", "xinference"),
)


def verdict(expected: int | None, found: int, confidence: str, how: str) -> str:
    """Return the word (ok, near, ...) for one answer."""
    if expected is None:
        return "ok" if confidence == "guess" else "false"
    if found == expected:
        return "ok"
    if how == "unknown model":
        return "miss"
    if found > expected:
        return "over"
    return "near" if found >= expected * NEAR else "under"


def asked(registry: Registry, case: Case) -> Lookup:
    """Return the registry's answer to a case."""
    query = case["query"]
    return registry.lookup(query["model"], query.get("provider"), query.get("base_url"))


def scored(registry: Registry, cases: list[Case]) -> list[str]:
    """Return the verdict on each case."""
    words = []
    for case in cases:
        answer, expect = asked(registry, case), case["expect"]
        words.append(
            verdict(expect and expect["context"], answer.context_window, answer.confidence, answer.how)
        )
    return words


def exact(registry: Registry, cases: list[Case]) -> list[str]:
    """Return the verdicts as `scored` does, for a plain look-up of the exact provider and id."""
    known = {(row.provider, row.id): row.context for row in registry.rows()}
    words = []
    for case in cases:
        provider, model = case["query"].get("provider"), case["query"]["model"]
        if provider is None:
            provider, _, model = model.partition("/")
        window, expect = known.get((provider, model)), case["expect"]
        if window is None:
            words.append("ok" if expect is None else "miss")
        else:
            words.append(verdict(expect and expect["context"], window, "fact", "exact"))
    return words


def is_told_by(row: ModelRow, sources: tuple[str, ...]) -> bool:
    """Return whether `sources` alone would give a row. A native window counts only if no other list has the
    row."""
    told = {*row.src}
    return told <= {*sources} if row.provider == OPEN_WEIGHTS else bool(told & {*sources})


def line(name: str, words: list[str]) -> str:
    """Return one line of the table."""
    counts = Counter(words)
    good = counts["ok"] + counts["near"]
    share = f"{good / len(words):6.1%}" if words else "  none"
    return f"{name:34} {len(words):4}  {share}  " + "  ".join(f"{word} {counts[word]}" for word in WORDS)


def speed(registry: Registry, cases: list[Case]) -> str:
    """Return a line with the times of uncached look-ups, after the indexes are built."""
    took = []
    for case in cases:
        begun = time.perf_counter()
        asked(registry, case)
        took.append(time.perf_counter() - begun)
    took.sort()
    median, slow = statistics.median(took), took[-1 - len(took) // 100]
    return f"a lookup: median {median * 1e3:.3f} ms, 99th percentile {slow * 1e3:.3f} ms"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--part", choices=("seen", "aside", "all"), default="all")
    parser.add_argument("--sources", action="store_true", help="score each source alone, and a plain look-up")
    parser.add_argument("--verbose", action="store_true", help="print every answer that is not ok")
    options = parser.parse_args()

    cases = read_rows(options.file)
    if options.part != "all":
        cases = part(cases)[options.part == "aside"]
    rows, warnings = read_packaged()
    for warning in warnings:
        print(warning)
    registry = Registry(rows)

    words = scored(registry, cases)
    for kind in sorted({case["kind"] for case in cases}):
        print(line(kind, [word for word, case in zip(words, cases, strict=True) if case["kind"] == kind]))
    print(line(f"all ({options.part})", words))
    caps = []
    for case in cases:
        if (expect := case["expect"]) is not None:
            answer = asked(registry, case)
            cap = answer.input_limit or answer.context_window
            caps.append(verdict(expect["input"] or expect["context"], cap, answer.confidence, answer.how))
    print(line("cap", caps))
    print(speed(registry, cases))
    if options.verbose:
        for word, case in zip(words, cases, strict=True):
            if word != "ok":
                answer = asked(registry, case)
                query, expect = case["query"], case["expect"]
                print(
                    f"{word:5} {query.get('provider')} | {query['model']}: {answer.context_window}"
                    f" ({answer.confidence}, {answer.how}), expected {expect and expect['context']}"
                )
    if options.sources:
        everything = registry.rows()
        for sources in SOURCES:
            alone = Registry(row for row in everything if is_told_by(row, sources))
            print(line("only " + " + ".join(sources), scored(alone, cases)))
        print(line("exact id, all sources", exact(registry, cases)))
        models_dev = Registry(row for row in everything if "models.dev" in row.src)
        print(line("exact id, models.dev", exact(models_dev, cases)))


if __name__ == "__main__":
    main()
