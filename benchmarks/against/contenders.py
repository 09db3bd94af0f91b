"""The contenders: who takes part in which row, and who cannot and why."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from benchmarks.against.places import PLACES, Place, failure_of, folder_of, is_there, python_of, versions_of

ROOT = Path(__file__).parent.parent.parent
DRIVERS = Path(__file__).parent / "drivers"

Kind = Literal["ours", "peer", "floor"]

NO_SESSION = "stores no sessions"
NO_EXACT = "has no tokenizer of its own"
ASKS_MODEL = "asks a model for every compaction"
ONLY_DROPS = "only drops messages"
TOKENS_ONLY = "only counts tokens"


class Contender(Struct, frozen=True, kw_only=True):
    """One program in the rows it can do."""

    name: str
    side: str
    """The file of `drivers/` that speaks for it."""
    place: str | None = None
    """The name of the environment in which it is installed; None if that is this project's own."""
    kind: Kind = "peer"
    """`floor`: does less than the row asks for, and shows what anything could reach."""
    rows: Mapping[str, str]
    """Row → what its side calls it."""
    how: Mapping[str, str] = {}
    """Row → what it does there, where that is not what the row says."""
    less: frozenset[str] = frozenset()
    """Rows of which it does less than they ask for: there it is a floor."""
    cannot: Mapping[str, str] = {}


CONTENDERS = (
    Contender(
        name="compactd",
        side="compactd_side",
        kind="ours",
        rows={row: row for row in ("count", "estimate", "cut", "plan", "trim", "compact", "load")},
        how={
            "estimate": "characters ÷ 4, as the specifications require",
            "cut": "walks back from the newest message and moves to a safe cut; sums of tokens and safe "
            "cuts are updated at each append",
            "plan": "decides what is removed, kept, pinned and shortened, finds the user's constraints, and "
            "computes all budgets; what it needs of a message was stored at the append, the user's "
            "constraints at the previous plan",
            "trim": "truncate: the plan, and a note with the number of removed messages, the user's "
            "constraints and the files; the journal keeps all messages",
            "compact": "extract: a record of what is likely to be needed again",
        },
    ),
    Contender(
        name="compactd, by script",
        side="compactd_side",
        kind="ours",
        rows={"estimate": "estimate_scripts"},
        how={"estimate": "by script and kind of text, for models whose tokenizer is not public"},
    ),
    Contender(
        name="compactd, read ahead",
        side="compactd_side",
        kind="ours",
        rows={"trim": "trim_ahead", "compact": "compact_ahead"},
        how=dict.fromkeys(
            ("trim", "compact"),
            "the same in a session whose messages the daemon has already read in idle time",
        ),
    ),
    Contender(
        name="compactd, 1 thread",
        side="compactd_side",
        kind="ours",
        rows={"count": "count_one"},
    ),
    Contender(
        name="msgspec",
        side="compactd_side",
        kind="floor",
        rows={"load": "decode"},
        how={"load": "only decodes the same journal into structs: checks nothing, computes no state"},
    ),
    Contender(
        name="tiktoken",
        side="tiktoken_side",
        place="small",
        rows={"count": "count"},
        cannot=dict.fromkeys(("plan", "compact", "load"), TOKENS_ONLY),
    ),
    Contender(name="tiktoken, 2 threads", side="tiktoken_side", place="small", rows={"count": "count_batch"}),
    Contender(
        name="rs-bpe",
        side="rs_bpe_side",
        place="small",
        rows={"count": "count"},
        cannot=dict.fromkeys(("plan", "compact", "load"), TOKENS_ONLY),
    ),
    Contender(name="rs-bpe, 2 threads", side="rs_bpe_side", place="small", rows={"count": "count_two"}),
    Contender(
        name="gpt-tokenizer",
        side="gpt_tokenizer_side",
        place="node",
        rows={"count": "count"},
        cannot=dict.fromkeys(("plan", "compact", "load"), TOKENS_ONLY),
    ),
    Contender(
        name="pi",
        side="pi_side",
        place="node",
        rows={row: row for row in ("estimate", "cut", "plan", "load")},
        how={
            "cut": "its function findCutPoint",
            "plan": "its function prepareCompaction: projection, cut, file operations",
        },
        cannot={"count": NO_EXACT, "compact": ASKS_MODEL},
    ),
    Contender(
        name="langchain",
        side="langchain_side",
        place="langchain",
        rows={row: row for row in ("estimate", "plan", "trim", "load")},
        how={
            "plan": "the work of its summarisation middleware before the summary: count, check, find the "
            "cut, divide the messages",
            "trim": "trim_messages with its approximate counter",
            "load": "messages_from_dict of one JSON file",
        },
        cannot={
            "count": NO_EXACT,
            "cut": 'counts again for each cut: see "plan a compaction"',
            "compact": ASKS_MODEL,
        },
    ),
    Contender(
        name="strands",
        side="strands_side",
        place="strands",
        rows={row: row for row in ("estimate", "cut", "trim", "load")},
        how={
            "cut": "cuts off a share of the messages, whatever their tokens",
            "trim": "its sliding window: keeps a fixed number of the newest messages, whatever their tokens",
        },
        less=frozenset(("cut", "trim")),
        cannot={"count": NO_EXACT, "plan": "asks the model directly after the cut", "compact": ASKS_MODEL},
    ),
    Contender(
        name="google-adk",
        side="adk_side",
        place="adk",
        rows={row: row for row in ("estimate", "plan", "load")},
        how={
            "plan": "finds the events to compact by its token threshold",
            "load": "reads its session from JSON",
        },
        cannot={
            "count": NO_EXACT,
            "compact": ASKS_MODEL,
            "cut": 'cuts between events: see "plan a compaction"',
        },
    ),
    Contender(
        name="litellm",
        side="litellm_side",
        place="litellm",
        rows={"count": "count", "trim": "trim"},
        how={
            "count": "token_counter for each text, which uses tiktoken",
            "trim": "trim_messages with its token counter",
        },
        cannot={
            "load": NO_SESSION,
            "plan": "plans no compaction: finds the cut while it trims",
            "compact": ONLY_DROPS,
        },
    ),
    Contender(
        name="headroom",
        side="headroom_side",
        place="headroom",
        rows={"compact": "compact"},
        how={"compact": "compress: rewrites tool results in place"},
        cannot={
            "count": "caches the counts of texts, so it does not count again",
            "load": NO_SESSION,
            "plan": "plans no compaction",
        },
    ),
    Contender(
        name="openhands",
        side="openhands_side",
        place="openhands",
        rows={"count": "count", "plan": "plan", "load": "load"},
        how={
            "count": "get_total_token_count of the events, which uses litellm and adds texts to each event",
            "plan": "finds the newest events that its condenser keeps within a token budget",
            "load": "reads its event log, one JSON file per event",
        },
        cannot={"compact": ASKS_MODEL},
    ),
)


def place_of(contender: Contender) -> Place | None:
    """Return the environment in which a contender is installed."""
    return next((place for place in PLACES if place.name == contender.place), None)


def why_not_there(contender: Contender) -> str | None:
    """Why it is not installed; None where it is."""
    place = place_of(contender)
    if place is None or is_there(place):
        return None
    return f"not installed: {failure_of(place) or 'python -m benchmarks.against.setting_up'}"


def command_of(contender: Contender) -> list[str]:
    """Return the command that starts a contender's child process."""
    place = place_of(contender)
    if place is None:
        return [sys.executable, "-m", f"benchmarks.against.drivers.{contender.side}"]
    if not place.node:
        return [str(python_of(place)), str(DRIVERS / f"{contender.side}.py")]
    node = shutil.which("node", path=str(python_of(place).parent)) or "node"
    return [node, "--expose-gc", str(DRIVERS / f"{contender.side}.mjs"), str(folder_of(place))]


QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "OTEL_SDK_DISABLED": "true",
    "HEADROOM_TELEMETRY": "off",
    "DO_NOT_TRACK": "1",
    "PYTHONNOUSERSITE": "1",
    "NO_COLOR": "1",
}
"""Nobody reports to anyone, and nobody looks anything up on the network."""


def environment_of(contender: Contender, ours: Mapping[str, str], ranks: Path) -> dict[str, str]:
    """Return the environment variables of a contender. `ours` is for this project's own servers, `ranks` is
    the folder of tiktoken's cache."""
    if contender.place is None:
        return {**ours, "PYTHONPATH": str(ROOT)}
    foreign = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return {**kept, **QUIET, "TIKTOKEN_CACHE_DIR": str(ranks)}


def all_versions() -> dict[str, list[str]]:
    """Return all installed packages, by environment."""
    return {place.name: versions_of(place) for place in PLACES if is_there(place)}
