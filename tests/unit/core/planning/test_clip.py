"""Clipping tool results if a batch of results is too large."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactd.core.planning.clip import MIN_CLIP, clip, clip_text
from compactd.core.text.tool_results import text_of_result
from compactd.core.tokens.counting import Chars4, ScriptAware
from compactd.protocol.messages import Document, Image, Text, ToolResult
from tests.support.dialogue import CHARS4, dialogue

COUNTERS = (Chars4(), ScriptAware())


def test_the_largest_results_come_down_first_to_one_size() -> None:
    items = dialogue("A9 T1000 T100 T600")

    clipping = clip(items, [(1, 0), (2, 0), (3, 0)], 700, CHARS4)

    assert clipping is not None
    assert [stub.entry_id for stub in clipping.stubs] == ["e2", "e4"]
    assert all(stub.tokens <= 300 for stub in clipping.stubs)
    assert clipping.results == 2
    assert 100 + sum(stub.tokens for stub in clipping.stubs) <= 700


def test_what_fits_is_left_alone() -> None:
    clipping = clip(dialogue("A9 T300 T400"), [(1, 0), (2, 0)], 700, CHARS4)

    assert clipping is not None
    assert clipping.stubs == ()


def test_results_that_would_be_all_mark_are_not_clipped() -> None:
    assert clip(dialogue("A9 T300 T400"), [(1, 0), (2, 0)], 2 * MIN_CLIP - 1, CHARS4) is None
    assert clip(dialogue("A9 T300 T400"), [(1, 0), (2, 0)], -5, CHARS4) is None


def test_head_and_tail_stay_and_the_mark_says_how_much_is_missing() -> None:
    text = "\n".join(f"line {n}" for n in range(1000))

    shown = clip_text(text, 200, CHARS4.count(text), "e9", CHARS4)

    assert shown.startswith("line 0\nline 1\n")
    assert shown.endswith("\nline 999")
    assert "… [clipped " in shown
    assert f" of {CHARS4.count(text):,} tokens; session/expand e9 shows all] …" in shown
    assert all(line in text or line.startswith("… [clipped") for line in shown.splitlines())


@given(text=st.text(min_size=1), copies=st.integers(50, 400), most=st.integers(MIN_CLIP, 600))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_clipped_text_is_within_its_size_in_any_script(text: str, copies: int, most: int) -> None:
    for counter in COUNTERS:
        whole = text * copies
        size = counter.count(whole)
        if size > most:
            shown = clip_text(whole, most, size, "e1", counter)
            assert counter.count(shown) <= most
            assert "… [clipped " in shown


def test_what_is_no_text_in_a_result_is_named() -> None:
    blocks = (Text(text="a"), Image(data="aaaa"), Document(title="b.pdf"), Document(text="c"))

    assert text_of_result(ToolResult(call_id="x", content=blocks)) == "a\n[image/png]\n[b.pdf]\nc"
