"""Requests to OpenAI's models with breakpoints are marked so that an edit leaves their beginning cached."""

from __future__ import annotations

import json

import msgspec
import pytest
from msgspec import Raw

from compactd.formats.messages.cache_markers import CacheMarker
from compactd.formats.messages.openai_cache_markers import mark_responses
from compactd.formats.messages.rendering import Rendered
from tests.support.loopback.breakpoint_cache import BreakpointCache

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}
SYSTEM, SUMMARY = CacheMarker(at="system", ttl="30m"), CacheMarker(at="summary", ttl="30m")
PROMPT = {
    "type": "message",
    "role": "developer",
    "content": [{"type": "input_text", "text": "Be brief.", **MARK}],
}


def rendered(*items: object, system: str | None = "Be brief.") -> Rendered:
    tool = Raw(msgspec.json.encode({"type": "function", "name": "read", "description": "x" * 4_000}))
    return Rendered(
        system=system, messages=[Raw(msgspec.json.encode(item)) for item in items], tools=[tool, tool]
    )


def user(*texts: str) -> dict:
    blocks = [{"type": "input_text", "text": text} for text in texts]
    return {"type": "message", "role": "user", "content": blocks}


def items_of(made: Rendered) -> list[dict]:
    return [json.loads(bytes(item)) for item in made.messages]


def test_the_system_prompt_becomes_a_marked_message_and_the_summary_is_marked_at_its_end() -> None:
    made, markers = mark_responses(
        rendered(user("sum", "mary"), user("x")), starts_with_summary=True, marks_system=True
    )

    marked = user("sum", "mary")
    marked["content"][1] |= MARK
    assert (made.system, items_of(made), markers) == (None, [PROMPT, marked, user("x")], (SYSTEM, SUMMARY))


@pytest.mark.parametrize(
    ("system", "items", "expected"), [("Be brief.", [PROMPT, user("x")], (SYSTEM,)), (None, [user("x")], ())]
)
def test_without_a_summary_no_other_message_is_marked(
    system: str | None, items: list[dict], expected: tuple[CacheMarker, ...]
) -> None:
    made, markers = mark_responses(
        rendered(user("x"), system=system), starts_with_summary=False, marks_system=True
    )

    assert (items_of(made), markers) == (items, expected)


def test_a_system_prompt_that_stays_in_the_instructions_is_not_marked() -> None:
    made, markers = mark_responses(rendered(user("sum")), starts_with_summary=True, marks_system=False)

    assert (made.system, markers) == (rendered().system, (SUMMARY,))


@pytest.mark.parametrize(
    "first",
    [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x", **MARK}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "compaction", "encrypted_content": "x"},
    ],
)
def test_what_cannot_be_marked_or_has_a_mark_stays_as_it_is(first: dict) -> None:
    made, markers = mark_responses(rendered(first, system=None), starts_with_summary=True, marks_system=True)

    assert (items_of(made), markers) == ([first], ())


def test_words_about_marks_are_no_marks() -> None:
    text = 'Set "prompt_cache_breakpoint":{"mode":"explicit"}.'

    _, markers = mark_responses(
        rendered(user(text), system=None), starts_with_summary=True, marks_system=True
    )

    assert markers == (SUMMARY,)


def test_the_prompt_and_the_tools_are_read_after_a_compaction_and_the_summary_after_an_edit() -> None:
    cache = BreakpointCache(lambda: 0.0)

    def bill(*items: dict, has_summary: bool = False) -> tuple[int, int]:
        made, _ = mark_responses(
            rendered(*items, system="s" * 4_000), starts_with_summary=has_summary, marks_system=True
        )
        tools = [json.loads(bytes(tool)) for tool in made.tools or ()]
        billed = cache.bill({"model": "gpt-5.6", "tools": tools, "input": items_of(made)})
        return billed.read, billed.size

    long = [user("word " * 1_000) for _ in range(9)]
    head = bill(*long)[1] - sum((len(json.dumps(one["content"][0])) + 3) // 4 for one in long)
    compacted = bill(user("summary " * 900), *long[5:], has_summary=True)
    grown = bill(user("summary " * 900), *long[5:], user("more"), has_summary=True)
    edited = bill(user("summary " * 900), user("other"), has_summary=True)

    assert head > 3_000
    assert compacted[0] == head
    assert grown[0] == compacted[1]
    assert edited[0] > head + 1_000
