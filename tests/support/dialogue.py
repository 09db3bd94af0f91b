"""Conversations from a short notation, counted as four characters a token.

`U40 A60 T200 A50`: user 40 tokens, assistant 60, tool 200, assistant 50; entries `e1`, `e2` …. An assistant
message gets one call for each tool message that follows it; `A20?` gets one more, without a result. `B30` is
a shell command that the user ran, `Y30` a user message that no person wrote, `S30` a system message.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence

from msgspec import Raw
from msgspec.structs import replace

from compactd.core.budget.budget import BudgetStatus, RequestSize, Window, compute_budget
from compactd.core.budget.settings import Resolved, merge
from compactd.core.history.entries import Item, View, with_stub
from compactd.core.planning.plan import CompactRequest, Fixed, Inputs
from compactd.core.summary.compaction import Ask, CompactionOutcome, Draft, SummaryAnswer
from compactd.core.tokens.counting import Chars4, message_tokens
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult
from compactd.protocol.settings import GivenSettings

CHARS4 = Chars4()
WORDS = "so we went on and looked at it once more until all was well "
CALL = ToolCall(call_id="", name="run", arguments=Raw(b"{}"))
CALL_TOKENS = 2
NOTHING_FIXED = Fixed()
MANUAL = CompactRequest()


def filler(tokens: int, seed: int = 0) -> str:
    """Text of exactly so many tokens, with no fact in it; another one for each seed."""
    own = "".join(chr(ord("a") + int(digit)) for digit in str(seed))
    text = f"{own} {WORDS * (tokens * 4 // len(WORDS) + 1)}"[: tokens * 4]
    return text[:-1] + "." if text else text


def dialogue(notation: str, first: int = 1) -> tuple[Item, ...]:
    """The messages of a notation."""
    words = notation.split()
    items: list[Item] = []
    calls: list[str] = []
    for at, word in enumerate(words):
        number = at + first
        tokens = int(word[1:].rstrip("?!"))
        match word[0]:
            case "A":
                results = next((i for i, w in enumerate(words[at + 1 :]) if w[0] != "T"), len(words) - at - 1)
                calls = [f"t{number}.{i}" for i in range(results)]
                asked = calls + ([f"t{number}.open"] if word.endswith("?") else [])
                text = filler(tokens - CALL_TOKENS * len(asked), number)
                blocks = [Text(text=text)] if text else []
                blocks += [replace(CALL, call_id=call) for call in asked]
                message = Message(role="assistant", content=tuple(blocks))
            case "T":
                result = ToolResult(
                    call_id=calls.pop(0), content=filler(tokens, number), is_error=word.endswith("!")
                )
                message = Message(role="tool", content=(result,))
            case "S":
                message = Message(role="system", content=(Text(text=filler(tokens, number)),))
            case kind:
                meta = {
                    "U": None,
                    "B": Meta(kind="bash_execution"),
                    "Y": Meta(synthetic=True),
                    "P": Meta(pinned=True),
                }[kind]
                message = Message(role="user", content=(Text(text=filler(tokens, number)),), meta=meta)
        assert message_tokens(message, CHARS4) == tokens, word
        items.append(Item(entry_id=f"e{number}", body=message, tokens=tokens))
    return tuple(items)


def view_of(items: Sequence[Item], tail_from: int = 0, epoch: int = 1) -> View:
    """A view of these items."""
    return View(items=tuple(items), tail_from=tail_from, tokens=sum(i.tokens for i in items), epoch=epoch)


def ids(items: Iterable[Item]) -> list[str]:
    """Their entry ids."""
    return [item.entry_id for item in items]


def resolved(**given: object) -> Resolved:
    """Settings from what is given, as `session/configure` gives it."""
    return merge([("request", GivenSettings(**given))])  # type: ignore[arg-type]


def standing_of(settings: Resolved, estimated: int, window: int | None = None) -> BudgetStatus:
    """Return the budget decision for a session of this estimated size."""
    known = Window() if window is None else Window(window=window, confidence="fact", source="registry")
    return compute_budget(settings, known, RequestSize(estimated=estimated))


def inputs_of(
    view: View,
    *,
    originals: tuple[Item, ...] = (),
    fixed: Fixed = NOTHING_FIXED,
    pinned: Iterable[str] = (),
    request: CompactRequest = MANUAL,
    **given: object,
) -> Inputs:
    """Return the inputs of a plan, counted as four characters per token. Without `originals`, the view's
    messages are the originals."""
    settings = resolved(**given)
    return Inputs(
        view=view,
        originals=originals or view.items,
        fixed=fixed,
        settings=settings.settings,
        standing=standing_of(settings, view.tokens + fixed.system + fixed.tools),
        request=request,
        counter=CHARS4,
        pinned=frozenset(pinned),
    )


def drive(
    running: Generator[tuple[Ask, ...], tuple[SummaryAnswer, ...], CompactionOutcome],
    script: Iterable[tuple[SummaryAnswer, ...]] = (),
) -> tuple[list[tuple[Ask, ...]], CompactionOutcome]:
    """Plays a script of answers: what was asked, round by round, and the end."""
    asked: list[tuple[Ask, ...]] = []
    answers = iter(script)
    try:
        asked.append(next(running))
        while True:
            asked.append(running.send(next(answers)))
    except StopIteration as end:
        return asked, end.value


def after(items: Sequence[Item], draft: Draft) -> View:
    """The view that a draft makes of these items, as the fold makes it."""
    shown = {item.entry_id: item for item in items}
    shown.update((stub.entry_id, with_stub(shown[stub.entry_id], stub)) for stub in draft.stubs)
    meta = Meta(
        type="compaction_summary",
        read_files=draft.result.read_files,
        modified_files=draft.result.modified_files,
    )
    summary = Item(
        entry_id=f"s{draft.first_kept}",
        body=Message(role="user", content=(Text(text=draft.summary),), meta=meta),
        tokens=draft.summary_tokens,
        kind="summary",
    )
    names = ids(items)
    tail = names[names.index(draft.first_kept) :] if draft.first_kept is not None else []
    pinned = [shown[entry] for entry in draft.pinned]
    return view_of([summary, *pinned, *(shown[entry] for entry in tail)], tail_from=1 + len(pinned))
