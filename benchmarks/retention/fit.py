"""Learns `core/extract/reuse_weights.py` from recorded sessions: how likely each feature is to be reused.

    python -m benchmarks.retention.fit [--data DIR] [--all] [--write]

Held-out sessions (`aside.py`) are left out, except with `--all`. Each other session is cut at several points.
At each, a feature of the past counts as used again if the agent writes it in the future before a tool result
or a user shows it. There is one logistic regression per kind of feature (L2 10); every cut has the same
weight, and features that are not used again are sampled. Without `--write` the weights are printed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from array import array
from multiprocessing import Pool
from pathlib import Path

from benchmarks.retention import contexts, cuts
from benchmarks.retention.aside import is_aside
from benchmarks.retention.cuts import normalised
from benchmarks.retention.reuse_inputs import INPUTS, inputs_of
from compactd.core.extract import reuse_weights
from compactd.core.extract.conversation import Conversation
from compactd.core.extract.facts import FactCache
from compactd.core.extract.features import KINDS
from compactd.core.extract.recent_files import working_directory
from compactd.core.extract.reuse_model import ReuseModel, Statistics
from compactd.core.history.entries import Item

SHARES = (0.25, 0.35, 0.5, 0.6, 0.75, 0.85)
MIN_STRETCH, MIN_PAST, MIN_FUTURE = 8_000, 6_000, 3_000
SAMPLED = 0.08
L2 = 10.0
NAMES = ("ATOM", "WORD", "RUN", "LINE")


def pasts(probe, file: Path):
    """(name, past, future) at several points of every stretch between recorded compactions."""
    head, messages = probe.load(str(file))
    if head["name"].startswith("aider"):
        return
    size = [len(probe.render(m)) / cuts.CHARS_A_TOKEN for m in messages]
    starts = [i for i, m in enumerate(messages) if m.get("kind") == "compaction_summary"]
    for low, high in cuts.stretches(starts, len(messages)):
        if sum(size[low:high]) < MIN_STRETCH:
            continue
        seen = set()
        for share in SHARES:
            at = cuts.cut_at(messages, size, low, high, share)
            if (
                at not in seen
                and high - at >= 6
                and sum(size[low:at]) >= MIN_PAST
                and sum(size[at:high]) >= MIN_FUTURE
            ):
                seen.add(at)
                yield f"{head['name']} {at}", messages[low:at], messages[at:high]


def samples(job) -> tuple[bytes, bytes, bytes]:
    """(kind and label of each sampled feature, its weight, its inputs) of one cut."""
    name, past, future = job
    count = contexts.counter()
    items = contexts.items_of(past, count)
    cache = FactCache()
    facts = [cache.learn(item) for item in items]
    cache.strip(working_directory(facts, cache.lexicon))
    facts = [cache.learn(item) for item in items]
    at = contexts.newest_request(items)
    request = items[at] if at is not None else None
    scene = Conversation([(item, True) for item in items], facts, request, cache.lexicon).scene
    statistics = Statistics(scene)
    chances = ReuseModel(statistics)
    known = statistics.features.tolist()
    there, shown, again = set(known), set(), set()
    for n, record in enumerate(record for record in future if record["role"] != "system"):
        item = Item(entry_id=f"f{n}", body=contexts.neutral(record), tokens=1)
        mine = {feature for part in cache.learn(item).parts for feature in part.features}
        if record["role"] == "assistant":
            again |= (mine & there) - shown
        shown |= mine
    draw = random.Random(name)
    labels, factors, inputs = array("b"), array("f"), array("f")
    for feature in known:
        used = feature in again
        if used or draw.random() < SAMPLED:
            labels.append(2 * (feature % KINDS) + used)
            factors.append(1.0 if used else 1 / SAMPLED)
            inputs.extend(inputs_of(chances, feature))
    return labels.tobytes(), factors.tobytes(), inputs.tobytes()


def logistic(np, x, y, w):
    """Weighted logistic regression by Newton's method; the first input is the constant, not shrunk."""
    shrink = np.r_[1e-6, np.full(x.shape[1] - 1, L2)]
    w = w * (len(y) / w.sum())
    beta = np.zeros(x.shape[1])
    for _ in range(40):
        p = 1 / (1 + np.exp(-(x @ beta)))
        slope = x.T @ (w * (p - y)) + shrink * beta
        bend = (x * (w * p * (1 - p))[:, None]).T @ x + np.diag(shrink)
        step = np.linalg.solve(bend, slope)
        beta -= step
        if abs(step).max() < 1e-7:
            break
    return beta


def learned(rows) -> dict[str, list[float]]:
    """Return the fitted weights of each kind of feature, from the samples of all cuts."""
    import numpy as np

    found = {}
    for kind, name in enumerate(NAMES):
        xs, ys, ws = [], [], []
        for labels, factors, inputs in rows:
            label = np.frombuffer(labels, np.int8)
            mine = label // 2 == kind
            factor = np.frombuffer(factors, np.float32)[mine].astype(np.float64)
            if len(factor):
                xs.append(np.frombuffer(inputs, np.float32).reshape(len(label), -1)[mine].astype(np.float64))
                ys.append(label[mine] % 2)
                ws.append(factor / factor.sum())
        found[name] = list(logistic(np, np.concatenate(xs), np.concatenate(ys), np.concatenate(ws)))
    return found


def module(found: dict[str, list[float]]) -> str:
    """The text of `core/extract/reuse_weights.py`."""
    out = f'"""{reuse_weights.__doc__}"""\n\nfrom __future__ import annotations\n'
    for name, beta in found.items():
        lines = "\n".join(
            "    " + " ".join(f"{value:.2f}," for value in beta[k : k + 11]) for k in range(0, len(beta), 11)
        )
        out += f"\n{name}_WEIGHTS = (\n{lines}\n)  # fmt: skip\n"
    return out


def main() -> int:
    """Run the command line."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    given.add_argument("--data", type=Path, default=Path(os.environ.get("COMPACTD_TEST_DATA", beside)))
    given.add_argument("--cache", type=Path, default=Path("build/retention"))
    given.add_argument("--all", action="store_true", help="also learn from the sessions put aside")
    given.add_argument("--write", action="store_true")
    options = given.parse_args()
    probe = cuts.judge(options.data.resolve().parent / "tools")
    files = [
        file
        for file in normalised(options.data, options.cache / "sessions")
        if options.all or not is_aside(file.stem)
    ]
    with Pool(2) as pool:
        rows = list(pool.imap(samples, (job for file in files for job in pasts(probe, file)), chunksize=2))
    found = learned(rows)
    text = module(found)
    if options.write:
        Path(reuse_weights.__file__).write_text(text, "utf-8")
        print(f"{len(rows)} cuts: {reuse_weights.__file__} written")
    else:
        print(text)
        for k, name in enumerate(INPUTS):
            print(f"{name:58}", *(f"{found[kind][k]:7.2f}" for kind in NAMES))
    return 0


if __name__ == "__main__":
    sys.exit(main())
