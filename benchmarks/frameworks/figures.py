"""What is measured, as docs/frameworks.json contains it."""

from __future__ import annotations

from msgspec import Struct


class Outcome(Struct, kw_only=True):
    """What a conversation with one runner came to. Tokens are counted by the provider, in o200k_base."""

    framework: str
    name: str
    """What is used in the framework, in Markdown."""
    kind: str
    """`alone`, `own` (what the framework ships), or `compactd`."""
    window: int
    requests: int
    """All requests, those for summaries and refused ones included."""
    rejections: int
    summaries: int
    input_tokens: int
    """Of all answered requests."""
    summary_tokens: int
    """Those of requests for summaries."""
    largest: int
    tasks: int
    turns: int
    facts: int
    """Facts in the last answer, if summaries by a model keep every fact that the model saw."""
    least_facts: int
    """The same if they keep none."""
    recalls: int
    lots: int
    all_turns: int
    all_facts: int
    faults: int
    """Requests that break a law other than that of the size."""
    error: str = ""
    """The first error that the framework raised; empty if there was none."""


class Timing(Struct, kw_only=True):
    """What a framework does between two calls of the model, in milliseconds."""

    framework: str
    name: str
    kind: str
    tokens: int
    """Of the history, about."""
    median_ms: float
    p95_ms: float
    first_ms: float
    """From the user's request to the first call of the model, in a new process with that history."""
    fresh_ms: float
    """The same without a history."""
    count: int


class Measured(Struct, kw_only=True):
    """Everything that the page shows."""

    date: str
    versions: dict[str, str]
    """Of the frameworks, by package."""
    outcomes: list[Outcome] = []
    timings: list[Timing] = []
