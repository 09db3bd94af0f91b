"""What a framework's module gives to the measurement: ways to run an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal

from benchmarks.frameworks.clock import Clock
from tests.frameworks.support.provider import Provider
from tests.frameworks.support.talk import SYSTEM, TOOLS

__all__ = [
    "BIG_WINDOW",
    "COMPACTD_WINDOW",
    "KEY",
    "LOOK_UPS",
    "SYSTEM",
    "TOOLS",
    "TRIGGER",
    "Ask",
    "Runner",
    "Start",
    "Timed",
]

Ask = Callable[[str], Awaitable[None]]
"""Give the agent a request of the user, in a conversation that goes on. Raises what the framework raises."""
Start = Callable[[Provider], AbstractAsyncContextManager[Ask]]
"""Start an agent. Raises `ImportError` if its adapter is not there."""
Kind = Literal["alone", "own", "compactd"]

KEY = "dummy-key"
COMPACTD_WINDOW = 8_000
LOOK_UPS = 12
"""How often a model may use compactd's recall tool, in the rows that say so."""
BIG_WINDOW = 1_000_000
"""The window of the agents that are timed: nothing is compacted in it."""
TRIGGER = 6_000
"""Tokens at which a framework's own way begins, if it must be told: three quarters of the window."""


@dataclass(frozen=True)
class Runner:
    """A way to run an agent."""

    framework: str
    name: str
    """What is used in the framework."""
    kind: Kind
    """`alone`: the framework without anything; `own`: with what it ships; `compactd`: with the adapter."""
    start: Start
    recalls: int = 0
    """How often the model may look a fact up before its last answer."""


@dataclass(frozen=True)
class Timed:
    """An agent that is timed."""

    framework: str
    name: str
    kind: Kind
    run: Callable[[Clock, bool], Awaitable[None]]
    """Run the agent with the clock's script. With True, it has a long history already."""
