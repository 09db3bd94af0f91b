"""A stand-in for the public suite, which is not installed for tests: sessions and a judge like those of it.

The statements are not the suite's. They have its ids, as many values as the suite's, and its labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LABELS = ("SAFETY RULE", "HARD CONSTRAINT", "FACT", "GOAL STATE", "USER PREFERENCE")
COUNTS = {
    "r-safety-1": (1, 0),
    "r-safety-2": (2, 0),
    "r-safety-3": (3, 0),
    "r-safety-4": (3, 0),
    "r-constraint-1": (2, 1),
    "r-constraint-2": (1, 0),
    "r-constraint-3": (2, 0),
    "r-constraint-4": (2, 0),
    "r-fact-1": (2, 1),
    "r-fact-2": (2, 0),
    "r-fact-3": (2, 0),
    "r-fact-4": (2, 0),
    "r-goal-1": (2, 0),
    "r-goal-2": (2, 0),
    "r-goal-3": (3, 0),
    "r-goal-4": (2, 0),
    "r-pref-1": (2, 0),
    "r-pref-2": (1, 0),
    "r-pref-3": (1, 0),
    "r-pref-4": (2, 0),
    "s-budget": (2, 1),
    "s-deadline": (1, 1),
    "s-codename": (1, 1),
    "s-timezone": (1, 1),
    "s-oncall": (2, 2),
    "s-branch": (1, 1),
    "s-style": (2, 1),
    "s-vault": (1, 1),
    "d-prod-db": (3, 0),
    "d-staging-db": (3, 0),
    "d-primary-region": (2, 0),
    "d-backup-region": (2, 0),
    "d-unit-tests": (2, 0),
    "d-integration-tests": (2, 0),
    "h-spending": (2, 1),
    "h-release": (1, 1),
    "h-codename": (1, 1),
    "h-timezone": (1, 1),
    "h-support": (2, 2),
    "h-branch": (1, 1),
    "h-style": (2, 2),
    "h-code": (1, 1),
    "x-project-spending": (2, 0),
    "x-conference-spending": (2, 0),
    "x-launch-date": (2, 0),
    "x-docs-date": (2, 0),
    "x-release-approver": (2, 0),
    "x-design-reviewer": (2, 0),
}
"""How many required and replaced tokens the suite's canaries have (version 0.8.0, 2026-11-27)."""

SMALL_TALK = (
    "Looking at the order of the folders and at who calls whom.",
    "Waiting doubles after each failure, up to half a minute.",
    "Thinking about how long browsers may keep a picture.",
    "Adding a check that opens the page once it is up.",
)


@dataclass(frozen=True)
class Turn:
    role: str
    text: str
    canary_id: str | None = None


@dataclass(frozen=True)
class Canary:
    id: str
    content: str
    required_tokens: tuple[str, ...]
    behavior_required_tokens: tuple[str, ...] = ()
    superseded_tokens: tuple[str, ...] = ()


@dataclass(frozen=True)
class Session:
    turns: tuple[Turn, ...]
    canary_positions: dict[str, int]

    def transcript(self) -> list[Turn]:
        return list(self.turns)


def text_of(turns: list[Turn]) -> str:
    return "\n".join(f"[{turn.role}] {turn.text}" for turn in turns)


def builder(kinds: str) -> Callable[[int], tuple[Session, list[Canary]]]:
    """A function that builds a session with the canaries whose ids begin with one of these letters."""

    def build(seed: int) -> tuple[Session, list[Canary]]:
        values = random.Random(seed)
        turns = [Turn("system", "You write code.")]
        canaries, positions = [], {}
        for number, (name, (required, replaced)) in enumerate(COUNTS.items()):
            if name[0] not in kinds:
                continue
            new, old = (
                [f"Value{values.randrange(10**6):06}" for _ in range(count)] for count in (required, replaced)
            )
            label = LABELS[number % len(LABELS)]
            for n in (0, 1):
                turns.append(Turn("user", SMALL_TALK[(2 * number + n) % len(SMALL_TALK)]))
                turns.append(Turn("assistant", "Noted, going on."))
            if old:
                turns.append(Turn("user", f"{label}: the {name} is {' and '.join(old)}."))
                turns.append(Turn("assistant", "Noted."))
            canary = Canary(
                id=name,
                content=f"{label}: the {name} is {' and '.join(new)}.",
                required_tokens=tuple(map(str.lower, new)),
                behavior_required_tokens=tuple(map(str.lower, new)),
                superseded_tokens=tuple(map(str.lower, old)),
            )
            positions[name] = len(turns)
            turns += [Turn("user", canary.content, name), Turn("assistant", "Noted and kept.")]
            canaries.append(canary)
        return Session(tuple(turns), positions), canaries

    return build


build_random_session = builder("r")
build_semantic_session = builder("sd")
build_semantic_heldout_session = builder("hx")


@dataclass(frozen=True)
class CompactedContext:
    text: str
    compactor_name: str
    round_num: int = 1


class Tail:
    """A compactor that keeps the end."""

    name = "tail"

    def compact(self, turns: list[Turn], round_num: int = 1, budget_chars: int = 0) -> CompactedContext:
        return CompactedContext(text_of(turns)[-budget_chars:], self.name, round_num)


COMPACTORS = {"tail": Tail}


def judge(
    compactors: Mapping[str, Callable], build: Callable[[int], tuple[Session, list[Canary]]], budget: float
) -> dict:
    """The results of the compactors in the session of one seed, after two rounds."""
    entries = []
    for name, make in compactors.items():
        session, canaries = build(1)
        turns, compactor = session.transcript(), make()
        size = len(text_of(turns))
        for round_num in (1, 2):
            made = compactor.compact(turns, round_num=round_num, budget_chars=int(size * budget))
            turns = [Turn("system", made.text)]
        kept = [all(token in made.text.lower() for token in one.required_tokens) for one in canaries]
        entries.append(
            {
                "compactor": name,
                "budget_fraction": budget,
                "budget_compliant": len(made.text) <= int(size * budget),
                "mean_final_output_ratio": len(made.text) / size,
                "randomized": {"overall_final_survival": sum(kept) / len(kept), "not known here": None},
                "semantic": {
                    "conflicts": {"n": 64, "resolved": 32, "both": 8, "stale": 8},
                    "distinct_pair_rate": 1.0,
                },
            }
        )
    return {"kit_version": "0", "budgets": [budget], "seeds": [1], "rounds": 2, "entries": entries}
