"""The six profiles: named sets of settings and rules. `default` is compactd's own, with Opal's numbers and
compactd's laws (docs/laws.md). Each of the others compacts as another agent does, by that agent's
specification.

The source of every number: docs/dev/behaviour.md, "One engine, six profiles", and the specifications that it
names.
"""

from __future__ import annotations

from msgspec.structs import replace

from compactd.core.budget.rules import (
    BACK_TO_ANY,
    KeepMessages,
    KeepRequest,
    KeepShare,
    KeepTokens,
    Move,
    Ratio,
    Reserve,
    Rules,
    Settings,
    UnknownWindow,
    Usable,
)
from compactd.core.text.summary_format import LEAD

DEFAULT_WINDOW = 128_000
"""The assumed window of an unknown model (docs/specs.md, "opal.md", "Context Window Sizes")."""

OPAL_MOVES = (
    Move(direction="forward", kinds=("user", "bash")),
    Move(direction="back", kinds=("user", "bash", "assistant")),
)
"""How Opal chooses the cut. A walk back from the newest message stops where the keep-recent budget is used
up. The cut is before the next user message from there on. If there is none, it is before the nearest user or
assistant message at or before that place (docs/specs.md, "opal.md", "1. Find Cut Point")."""

DEFAULT_MOVES = (
    Move(direction="forward", kinds=("user", "bash"), min_share=0.5),
    Move(direction="back", kinds=("user", "bash", "assistant"), max_share=2.0),
    *OPAL_MOVES,
)
"""As Opal, but a cut does not move forward if less than half of what may stay would stay, unless a move back
would keep more than twice as much. Otherwise a new request after one long turn would be all that stays word
for word.
"""

DEFAULT_RULES = Rules(
    trigger=Ratio(ratio=0.8, of="cap", guess_ratio=0.6),
    inclusive=True,
    size="prompt",
    keep=KeepShare(divisor=4, manual_tokens=20_000),
    overflow_keep=KeepShare(divisor=5),
    stop_inclusive=False,
    moves=DEFAULT_MOVES,
    splits=True,
    too_short=False,
    unknown=UnknownWindow(window=DEFAULT_WINDOW, after_rejection=DEFAULT_WINDOW, from_report=True),
    without_model="extract",
    prompt="sections",
    lead=LEAD,
)

DEFAULT = Settings(profile="default", rules=DEFAULT_RULES)

OPAL = replace(
    DEFAULT,
    profile="opal",
    estimator="chars4",
    rules=replace(
        DEFAULT_RULES,
        trigger=Ratio(ratio=0.8),
        unknown=UnknownWindow(window=DEFAULT_WINDOW, after_rejection=DEFAULT_WINDOW),
        without_model="truncate",
        moves=OPAL_MOVES,
    ),
)

GO_AGENT = replace(
    DEFAULT,
    profile="go-agent",
    estimator="chars4",
    split_min_messages=1,
    rules=replace(
        DEFAULT_RULES,
        trigger=Reserve(tokens=16_384),
        inclusive=False,
        size="total",
        keep=KeepTokens(tokens=20_000),
        stop_inclusive=True,
        # The cut is at a user message; inside a turn only if the newest turn alone exceeds the keep-recent
        # budget (docs/specs.md, "go-agent.md", "Cut Point Rules").
        moves=(
            Move(direction="back", kinds=("user", "bash", "assistant"), only_in_newest_turn=True),
            Move(direction="back", kinds=("user",)),
            Move(direction="back", kinds=("bash", "assistant")),
        ),
        unknown=UnknownWindow(window=None, after_rejection=DEFAULT_WINDOW),
    ),
)

KLAUDE_KEEP = KeepTokens(tokens=20_000, ratio=0.35)

KLAUDE = replace(
    DEFAULT,
    profile="klaude",
    estimator="chars4",
    split_min_messages=1,
    rules=replace(
        DEFAULT_RULES,
        trigger=Reserve(tokens=16_384, divisor=4),
        inclusive=False,
        size="context_size",
        keep=KLAUDE_KEEP,
        overflow_keep=KLAUDE_KEEP,
        stop_inclusive=True,
        moves=BACK_TO_ANY,
        unknown=UnknownWindow(window=None, from_report=True),
        lead="The conversation history before this point was compacted into the following summary:",
        bodiless_is_overflow=True,
        sub_agents_compact=False,
    ),
)

EVMTS = replace(
    DEFAULT,
    profile="evmts",
    estimator="chars4",
    rules=replace(
        DEFAULT_RULES,
        trigger=Ratio(ratio=0.8, unknown=150_000),
        inclusive=False,
        size="estimate",
        keep=KeepMessages(messages=5),
        moves=BACK_TO_ANY,
        splits=False,
        too_short=True,
        unknown=UnknownWindow(window=None),
        prompt="evmts",
        lead="[Conversation Summary]",
        end="[End Summary - {n} messages compacted]",
    ),
)

OPENCODE = replace(
    DEFAULT,
    profile="opencode",
    estimator="chars4",
    prune=True,
    auto_continue=True,
    rules=replace(
        DEFAULT_RULES,
        trigger=Usable(output_tokens=32_000),
        inclusive=False,
        size="finished",
        keep=KeepRequest(),
        moves=BACK_TO_ANY,
        splits=False,
        unknown=UnknownWindow(window=None, after_rejection=DEFAULT_WINDOW),
        prompt="opencode",
        auto_off=(*DEFAULT_RULES.auto_off, "OPENCODE_DISABLE_AUTOCOMPACT"),
        prune_off=("OPENCODE_DISABLE_PRUNE",),
        chars4="chars4_utf16",
    ),
)

PROFILES = {row.profile: row for row in (DEFAULT, OPAL, GO_AGENT, KLAUDE, EVMTS, OPENCODE)}
"""The six profiles, by name."""
