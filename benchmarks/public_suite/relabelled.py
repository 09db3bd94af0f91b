"""Builds the relabelled copy of a session: the same turns and values, other sentences, and no labels.

The suite's sessions mark what matters with labels, and always with the same sentences. A compactor that looks
for these labels or sentences does well in them without being good. In the copy, only the values and the order
of the turns are the suite's. Only the standard library is imported here, because this file is loaded in the
suite's environment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from benchmarks.public_suite.wordings import FILLERS, REPLIES, SYSTEM, WORDINGS


class Turn(Protocol):
    """A turn of the suite, a dataclass."""

    role: str
    text: str
    canary_id: str | None


class Canary(Protocol):
    """A statement that must survive, a dataclass of the suite."""

    id: str
    content: str
    required_tokens: tuple[str, ...]
    superseded_tokens: tuple[str, ...]


class Session(Protocol):
    """A session of the suite, a dataclass."""

    turns: tuple[Turn, ...]


S = TypeVar("S", bound=Session)
C = TypeVar("C", bound=Canary)


class SuiteChanged(Exception):
    """The suite has something that `wordings.py` does not cover. It may be another version."""


def relabelled(session: S, canaries: Sequence[C]) -> tuple[S, list[C]]:
    """Return the copy of `session`, and its canaries with the tokens that the judge must find in the copy.

    Raise `SuiteChanged` for a canary or text that `wordings.py` does not cover.
    """
    texts: dict[str, str] = {}
    copies = []
    for canary in canaries:
        copy, replaced = _reworded(session, canary)
        texts |= replaced
        copies.append(copy)
    spare = {"user": iter(FILLERS), "assistant": iter(REPLIES), "system": iter((SYSTEM,))}
    for turn in session.turns:
        if turn.text not in texts:
            texts[turn.text] = _next_of(spare, turn)
    turns = tuple(replace(turn, text=texts[turn.text]) for turn in session.turns)
    return replace(session, turns=turns), copies


def relabelling(build: Callable[[int], tuple]) -> Callable[[int], tuple]:
    """Return a builder of relabelled sessions, made from a builder of the suite.

    Both take a seed and return a session, its canaries, and perhaps more.
    """

    def build_relabelled(seed: int) -> tuple:
        session, canaries, *more = build(seed)
        return (*relabelled(session, canaries), *more)

    return build_relabelled


def _reworded(session: Session, canary: C) -> tuple[C, dict[str, str]]:
    """Return the reworded canary, and the new text for each text of the suite that states it."""
    wording = WORDINGS.get(canary.id)
    if wording is None:
        raise SuiteChanged(f"wordings.py has no statement for {canary.id}")
    values = _as_spelled(canary.required_tokens, canary.content)
    old: list[str] = []
    texts = {}
    if canary.superseded_tokens:
        earlier = _earlier_statement(session, canary)
        old = _as_spelled(canary.superseded_tokens, earlier)
        texts[earlier] = wording.before.format(*values, old=old)
    now = wording.now.format(*values, old=old)
    texts[canary.content] = now
    tokens = _filled(wording.tokens, values, old)
    stale = _filled(wording.stale, values, old)
    missing = [token for token in tokens if token not in now.lower()]
    if missing or bool(stale) != bool(canary.superseded_tokens):
        raise SuiteChanged(f"the statement for {canary.id} in wordings.py does not fit: {missing}")
    copy = replace(
        canary,
        content=now,
        required_tokens=tokens,
        behavior_required_tokens=tokens,
        superseded_tokens=stale,
    )
    return copy, texts


def _filled(templates: Iterable[str], values: Sequence[str], old: Sequence[str]) -> tuple[str, ...]:
    return tuple(template.format(*values, old=old).lower() for template in templates)


def _as_spelled(tokens: Iterable[str], text: str) -> list[str]:
    """Return the tokens, which the suite has in lower case, with the capitals that they have in `text`."""
    spelled = []
    for token in tokens:
        start = text.lower().find(token.lower())
        if start < 0:
            raise SuiteChanged(f"{token!r} is not in its statement")
        spelled.append(text[start : start + len(token)])
    return spelled


def _earlier_statement(session: Session, canary: Canary) -> str:
    """Return the one text of the user that has all values which `canary` replaces."""
    found = {
        turn.text
        for turn in session.turns
        if turn.role == "user"
        and turn.canary_id is None
        and all(token.lower() in turn.text.lower() for token in canary.superseded_tokens)
    }
    if len(found) != 1:
        raise SuiteChanged(f"{len(found)} texts have the earlier value of {canary.id}")
    return found.pop()


def _next_of(spare: dict[str, Iterator[str]], turn: Turn) -> str:
    text = next(spare.get(turn.role, iter(())), None)
    if text is None:
        raise SuiteChanged(f"wordings.py has too few texts for the role {turn.role}")
    return text
