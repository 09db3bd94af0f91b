"""Scores the registry against labelled lookups: `python benchmarks/truth/score_models.py FILE [--verbose]`.

FILE holds one JSON object a line: `query{model, provider}`, `expect{context, input, output}` or null, `kind`.
Each answer is one of: ok (the window is equal), near (93 to 100 % of it), under (less), over (more), false (a
number presented as fact for a model that nobody knows), miss (only the fallback for one that is known).
`cap` compares what a request may hold: the input limit where there is one, else the window.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

from compactd.catalogue import Catalogue

NEAR = 0.93


def verdict(expected: int | None, found: int, confidence: str, how: str) -> str:
    """One word for one answer."""
    if expected is None:
        return "ok" if confidence == "guess" else "false"
    if found == expected:
        return "ok"
    if how == "unknown model":
        return "miss"
    if found > expected:
        return "over"
    return "near" if found >= expected * NEAR else "under"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print every answer that is not ok")
    options = parser.parse_args()

    catalogue = Catalogue()
    by_kind: dict[str, Counter[str]] = defaultdict(Counter)
    caps: Counter[str] = Counter()
    for line in options.file.read_text("utf-8").splitlines():
        case = json.loads(line)
        query, expect = case["query"], case["expect"]
        answer = catalogue.lookup(query["model"], query.get("provider"))
        found = verdict(expect and expect["context"], answer.context_window, answer.confidence, answer.how)
        by_kind[case["kind"]][found] += 1
        if expect is not None:
            cap = answer.input_limit or answer.context_window
            caps[verdict(expect["input"] or expect["context"], cap, answer.confidence, answer.how)] += 1
        if options.verbose and found != "ok":
            print(
                f"{found:5} {query['provider']} | {query['model']}: {answer.context_window}"
                f" ({answer.confidence}, {answer.how}), expected {expect and expect['context']}"
            )
    total: Counter[str] = Counter()
    for kind, counts in sorted(by_kind.items()):
        print(
            f"{kind:10} {sum(counts.values()):4}  " + "  ".join(f"{k} {n}" for k, n in sorted(counts.items()))
        )
        total += counts
    print(f"{'all':10} {sum(total.values()):4}  " + "  ".join(f"{k} {n}" for k, n in sorted(total.items())))
    print(f"{'cap':10} {sum(caps.values()):4}  " + "  ".join(f"{k} {n}" for k, n in sorted(caps.items())))


if __name__ == "__main__":
    main()
