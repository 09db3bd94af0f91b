"""Search: what is found, in which order, and the excerpt of each hit."""

from __future__ import annotations

import msgspec

from compactd.core.history.entries import Item
from compactd.formats.messages.neutral import decode_message
from compactd.session.search import SNIPPET_CHARS, search


def item(number: int, content: object, role: str = "user") -> Item:
    raw = msgspec.json.encode({"role": role, "content": content})
    return Item(entry_id=f"e{number}", body=decode_message(raw), tokens=1)


def result(text: str) -> object:
    return [{"type": "tool_result", "call_id": "t1", "content": text}]


def test_case_is_ignored_and_the_newest_comes_first() -> None:
    items = [item(1, "the Cache is stale"), item(2, "nothing"), item(3, "CACHE again")]

    assert [found.item.entry_id for found in search(items, "cache", 10)] == ["e3", "e1"]


def test_no_more_than_the_limit_are_found() -> None:
    items = [item(n, "same words") for n in range(1, 8)]

    assert [found.item.entry_id for found in search(items, "words", 2)] == ["e7", "e6"]


def test_calls_results_and_reasoning_are_searched_and_base64_is_not() -> None:
    call = {"type": "tool_call", "call_id": "t1", "name": "read", "arguments": {"path": "src/needle.py"}}
    picture = {"type": "image", "media_type": "image/png", "data": "needleneedle"}
    items = [
        item(1, [call], role="assistant"),
        item(2, result("a needle in the output"), role="tool"),
        item(3, [{"type": "thinking", "text": "where is the needle"}], role="assistant"),
        item(4, [picture]),
    ]

    assert [found.item.entry_id for found in search(items, "needle", 10)] == ["e3", "e2", "e1"]


def test_a_snippet_shows_the_hit_where_folding_lengthens_the_text() -> None:
    before = "Straße " * 300
    found = search([item(1, f"{before}the timeout was 30 s {before}")], "TIMEOUT", 1)

    assert "the timeout was 30 s" in found[0].snippet


def test_a_word_is_found_by_its_folded_form() -> None:
    assert search([item(1, "die Straße ist lang")], "STRASSE", 1)[0].snippet == "die Straße ist lang"


def test_a_snippet_is_short_and_says_where_it_was_cut() -> None:
    found = search([item(1, "a " * 500 + "middle" + " b" * 500)], "middle", 1)

    assert len(found[0].snippet) <= SNIPPET_CHARS + 2
    assert (found[0].snippet[0], found[0].snippet[-1]) == ("…", "…")


def test_a_text_that_is_not_there_is_not_found() -> None:
    assert search([item(1, "something"), item(2, "")], "other", 5) == ()
