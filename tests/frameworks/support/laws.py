"""What must be true of every request that a provider receives, whatever an adapter says of it.

assert not broken(provider)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tests.frameworks.support.provider import Provider, repeated
from tests.frameworks.support.reading import Item, items_of, system_of, tools_of
from tests.frameworks.support.talk import INJECTED
from tests.support.loopback import Seen

SUMMARY = "[Conversation summary"
"""How compactd's summary begins. What follows it in the same message is no word of the user's."""
MARK_LINES = 4

IsSummary = Callable[[str], bool]


def broken(provider: Provider, is_summary: IsSummary | None = None) -> list[str]:
    """Return what is wrong in the requests that a provider received, one line per fault; empty if nothing is.

    A refused request is a fault. Requests for summaries are only checked for their size. `is_summary` says
    whether a text of a user message is marked as a summary; by default, if it begins with compactd's mark.
    """
    found = []
    asides = set(map(id, provider.asides))
    for number, seen in enumerate(provider.requests):
        faults = [f"no such path: {seen.path}"] if not seen.wire else []
        if not seen.accepted:
            faults.append(f"refused: {seen.tokens:,} tokens, and the window is {provider.window:,}")
        if seen.wire and id(seen) not in asides:
            faults += faults_of(provider, seen, is_summary or is_marked)
        found += [f"request {number}: {fault}" for fault in faults]
    return found


def is_marked(text: str) -> bool:
    """Return whether a text is marked as compactd's summary. A framework may put its own words before it, in
    a line of their own."""
    return any(line.startswith(SUMMARY) for line in text.splitlines()[:MARK_LINES])


def faults_of(provider: Provider, seen: Seen, is_summary: IsSummary = is_marked) -> list[str]:
    """Return what is wrong in one request of the conversation, except its size."""
    items = items_of(seen.body)
    return [
        *_fixed(provider, seen),
        *_pairs(items, may_split=seen.wire == "openai_responses"),
        *_ids(items),
        *_order(provider, items, is_summary),
        *_newest(provider, seen, items, is_summary),
        *_authors(provider, items, is_summary),
    ]


def _fixed(provider: Provider, seen: Seen) -> Iterator[str]:
    if provider.talk.system not in system_of(seen.body):
        yield "the system prompt is missing or changed"
    if missing := {use.name for use in provider.talk.uses} - tools_of(seen.body):
        yield f"tools are missing: {sorted(missing)}"


def _pairs(items: Sequence[Item], *, may_split: bool) -> Iterator[str]:
    """A result follows its call. All results come before anything else is said.

    `may_split`: the calls and the texts of one answer may be items of their own, as in Responses.
    """
    waiting: dict[str, None] = {}
    for item in items:
        if waiting and item.role in ("user", "system"):
            yield f"calls {list(waiting)} have no result before the next message"
            waiting = {}
        if waiting and item.role == "assistant" and not may_split:
            yield f"calls {list(waiting)} have no result before the next answer"
            waiting = {}
        for call, _ in item.results:
            if call not in waiting:
                yield f"no call {call!r} waits for its result"
            waiting.pop(call, None)
        waiting.update((call, None) for call, _ in item.calls)
    if waiting:
        yield f"calls {list(waiting)} have no result at the end"


def _ids(items: Sequence[Item]) -> Iterator[str]:
    """No call, result or item comes twice."""
    for name, ids in (
        ("call", [call for item in items for call, _ in item.calls]),
        ("result", [call for item in items for call, _ in item.results]),
        ("item", [item.id for item in items if item.id]),
    ):
        for one in repeated(ids):
            yield f"{name} {one!r} comes more than once"


def _order(provider: Provider, items: Sequence[Item], is_summary: IsSummary) -> Iterator[str]:
    """Calls and requests have the order in which they were made."""
    places = {call: at for at, call in enumerate(provider.issued)}
    calls = [places[call] for item in items for call, _ in item.calls if call in places]
    if calls != sorted(calls):
        yield f"calls are out of order: {calls}"
    lot = -1
    for item in items:
        for request in _requests(provider, item, is_summary):
            if request <= lot:
                yield f"request {request + 1} of the user comes after work on request {lot + 1}"
            lot = request
        for call, _ in item.calls:
            of = provider.issued[call][0] if call in provider.issued else lot
            if of < lot:
                yield f"call {call!r} of request {of + 1} comes after request {lot + 1}"
            lot = max(lot, of)


def _newest(provider: Provider, seen: Seen, items: Sequence[Item], is_summary: IsSummary) -> Iterator[str]:
    """The newest request of the user is there, word for word, as the user's message."""
    newest = provider.newest(seen)
    if newest not in [lot for item in items for lot in _requests(provider, item, is_summary)]:
        yield f"request {newest + 1} of the user, the newest, is missing or changed"


def _requests(provider: Provider, item: Item, is_summary: IsSummary) -> list[int]:
    """Return the numbers of the user's requests that a user message contains in their own words."""
    if item.role != "user":
        return []
    return [
        lot
        for lot, request in enumerate(provider.talk.requests)
        if any(request in text and not is_summary(text) for text in item.texts)
    ]


def _authors(provider: Provider, items: Sequence[Item], is_summary: IsSummary) -> Iterator[str]:
    """No words of a tool are in a message of the user's or in the system prompt, except in a marked
    summary."""
    values = [provider.talk.facts[use.fact] for _, use in provider.issued.values()]
    for item in items:
        if item.role not in ("user", "system"):
            continue
        for text in item.texts:
            if is_summary(text) and item.role == "user":
                if any(line.strip() == INJECTED for line in text.splitlines()):
                    yield "an instruction of a tool stands in the summary without a mark"
                continue
            if INJECTED in text or any(value in text for value in values):
                yield f"words of a tool are in a {item.role} message: {text[:80]!r}"
