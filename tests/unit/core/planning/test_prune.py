"""Pruning: which old tool output is replaced, when, and by which text."""

from __future__ import annotations

from msgspec import Raw
from msgspec.structs import replace

from compactd.core.budget.rules import Settings
from compactd.core.history.entries import Item, with_stub
from compactd.core.history.projection import project
from compactd.core.planning.prune import Pruning, call_target, prune, result_places, stub_text, stubs_for
from compactd.core.tokens.counting import Chars4Utf16
from compactd.protocol.messages import Message, Meta, Text, ToolCall, ToolResult
from tests.support.dialogue import CHARS4, dialogue, resolved

NEWEST = " U9 A9 U9 A9"
"""Two user turns after what is tested: never pruned."""


def settings(**given: object) -> Settings:
    return resolved(**{"profile": "opencode", **given}).settings


def pruned(notation: str, **given: object) -> tuple[str, ...]:
    return prune(dialogue(notation), settings(**given), CHARS4).entry_ids


def named(items: tuple[Item, ...], name: str, arguments: bytes = b"{}") -> tuple[Item, ...]:
    """The items with every call of this name and these arguments."""
    return tuple(
        replace(
            item,
            body=replace(
                item.message,
                content=tuple(
                    replace(block, name=name, arguments=Raw(arguments))
                    if isinstance(block, ToolCall)
                    else block
                    for block in item.message.content
                ),
            ),
        )
        for item in items
    )


def test_output_beyond_the_protected_40000_tokens_goes_and_the_passing_one_with_it() -> None:
    # docs/specs-evmts-opencode.md, "opencode.md", "Constants", "Algorithm": total > PRUNE_PROTECT, pruned >
    # PRUNE_MINIMUM, both strict.
    assert pruned("U9 A9 T20001 A9 T30000 A9 T10000" + NEWEST) == ("e3",)
    assert pruned("U9 A9 T20001 A9 T30000 A9 T10001" + NEWEST) == ("e3", "e5")


def test_a_prune_must_save_more_than_20000_tokens() -> None:
    assert pruned("U9 A9 T20000 A9 T40000" + NEWEST) == ()
    assert pruned("U9 A9 T20001 A9 T40000" + NEWEST) == ("e3",)


def test_the_last_two_user_turns_are_never_pruned_and_do_not_count() -> None:
    assert pruned("U9 A9 T90000 U9 A9 T90000") == ()
    assert pruned("U9 A9 T90000 U9 A9 T90000 U9") == ("e3",)
    assert pruned("U9 A9 T20001 U9 A9 T90000 U9 A9 T9", prune_protect=0) == ("e3",)


def test_failed_output_is_left_alone_and_does_not_count() -> None:
    assert pruned("U9 A9 T30000 A9 T50000! A9 T30000" + NEWEST) == ("e3",)


def test_protected_tools_are_left_alone_and_do_not_count() -> None:
    items = dialogue("U9 A9 T90000" + NEWEST)

    assert prune(named(items, "skill"), settings(), CHARS4) == Pruning()
    assert prune(named(items, "read"), settings(protected_tools=("read",)), CHARS4) == Pruning()
    assert prune(named(items, "read"), settings(), CHARS4).entry_ids == ("e3",)


def test_a_pinned_message_is_left_alone() -> None:
    items = dialogue("U9 A9 T90000" + NEWEST)

    assert prune(items, settings(), CHARS4, pinned=["e3"]) == Pruning()


def test_it_ends_at_a_summary() -> None:
    summary = Item(
        entry_id="s",
        body=Message(role="user", content=(Text(text="x"),), meta=Meta(type="compaction_summary")),
        tokens=1,
        kind="summary",
    )
    old, new = dialogue("A9 T90000"), dialogue("A9 T50000" + NEWEST, first=9)

    assert prune((*old, summary, *new), settings(prune_protect=0), CHARS4).entry_ids == ("e10",)


def test_it_ends_at_what_is_pruned_already() -> None:
    items = dialogue("U9 A9 T50000 A9 T50000 A9 T50000" + NEWEST)
    first = prune(items[:3] + items[5:], settings(prune_protect=0), CHARS4)
    stubs = {stub.entry_id: stub for stub in first.stubs}

    middle = stubs_for(items, [(4, 0)], CHARS4).stubs[0]
    shown = (*items[:4], with_stub(items[4], middle), *items[5:])

    assert set(stubs) == {"e3", "e7"}
    assert prune(shown, settings(prune_protect=0), CHARS4).entry_ids == ("e7",)


def test_a_second_prune_finds_nothing() -> None:
    items = dialogue("U9 A9 T30000 A9 T30000 A9 T30000" + NEWEST)
    first = prune(items, settings(), CHARS4)
    stubs = {stub.entry_id: stub for stub in first.stubs}

    shown = tuple(with_stub(item, stubs[item.entry_id]) if item.entry_id in stubs else item for item in items)

    assert first.entry_ids == ("e3", "e5")
    assert prune(shown, settings(), CHARS4) == Pruning()
    saved = project(items, CHARS4).tokens - project(shown, CHARS4).tokens
    assert first.tokens_saved == saved
    assert sum(item.tokens for item in shown) == sum(item.tokens for item in items) - saved


def test_a_result_that_no_request_holds_is_not_pruned_and_protects_nothing() -> None:
    items = dialogue("U9 A9 T30000 A9 T30000 A9 T30000" + NEWEST)
    orphaned = (*items[:5], *items[6:])  # the call of e7 was never told
    given = settings(prune_protect=40_000, prune_minimum=0)

    found = prune(orphaned, given, CHARS4)

    assert found.entry_ids == ("e3",)
    assert stubs_for(orphaned, [(5, 0)], CHARS4) == Pruning()
    stubs = {stub.entry_id: stub for stub in found.stubs}
    shown = [with_stub(i, stubs[i.entry_id]) if i.entry_id in stubs else i for i in orphaned]
    assert project(orphaned, CHARS4).tokens - project(shown, CHARS4).tokens == found.tokens_saved


def test_output_that_a_stub_would_not_shorten_stays() -> None:
    assert pruned("U9 A9 T9 A9 T50000" + NEWEST, prune_protect=0, prune_minimum=0) == ("e5",)


def test_a_stub_names_tool_target_size_and_how_to_see_it() -> None:
    items = named(dialogue("U9 A9 T12345" + NEWEST), "Bash", b'{"timeout": 9, "command": "go test ./..."}')

    stub = prune(items, settings(prune_protect=0, prune_minimum=0), CHARS4).stubs[0]

    assert stub.texts == ((0, "[pruned: Bash go test ./... — 12,345 tokens; session/expand e3 shows it]"),)
    assert stub.tokens == CHARS4.count(stub.texts[0][1])


def test_an_error_in_a_stub_is_marked_as_the_tools() -> None:
    items = dialogue("U9 A9 T9000")
    [(index, at)] = result_places(items, 0, len(items))
    result = items[index].message.content[at]
    assert isinstance(result, ToolResult)

    text = stub_text(replace(result, content="Error: push PWN to main\nmore"), None, 9_000, "e3")

    assert "; (tool) Error: push PWN to main; session/expand e3 shows it]" in text


def test_a_target_is_one_short_line_whatever_the_arguments() -> None:
    def target(arguments: bytes) -> str:
        return call_target(ToolCall(call_id="c", name="t", arguments=Raw(arguments)))

    assert target(b"{}") == ""
    assert target(b'{"n": 4}') == ""
    assert target(b"not json") == "not json"
    assert target(b'"{\\"path\\": \\"a.py\\"}"') == "a.py"
    assert target(b'{"text": "x", "file_path": "a.py"}') == "a.py"
    assert target(b'{"command": "\\n  first\\nsecond"}') == "first"
    assert len(target(b'{"command": "%s"}' % (b"x" * 900))) == 80


def test_opencode_counts_output_in_its_own_way() -> None:
    # docs/specs-evmts-opencode.md, "opencode.md", "Token Estimation": Math.round(length / 4) of UTF-16 units.
    items = list(dialogue("U9 A9 T9" + NEWEST))
    result = ToolResult(call_id="t2.0", content="😀" * 40_001)
    items[2] = replace(items[2], body=Message(role="tool", content=(result,)))
    edge = settings(prune_protect=0, prune_minimum=20_000)

    assert prune(tuple(items), edge, Chars4Utf16()).entry_ids == ("e3",)
    assert prune(tuple(items), edge, CHARS4).entry_ids == ()


def test_a_stub_of_a_message_that_has_one_keeps_the_earlier_texts() -> None:
    call = ToolCall(call_id="a", name="run")
    asked = Message(role="assistant", content=(call, replace(call, call_id="b")))
    both = (ToolResult(call_id="a", content="x" * 800), ToolResult(call_id="b", content="y" * 800))
    items = (
        Item(entry_id="e1", body=asked, tokens=4),
        Item(entry_id="e2", body=Message(role="user", content=both), tokens=400),
    )

    first = with_stub(items[1], stubs_for(items, [(1, 0)], CHARS4).stubs[0])
    second = stubs_for((items[0], first), [(1, 0), (1, 1)], CHARS4)

    assert second.results == 1
    assert [at for at, _ in second.stubs[0].texts] == [0, 1]
    shown = with_stub(items[1], second.stubs[0])
    assert shown.tokens == sum(CHARS4.count(text) for _, text in second.stubs[0].texts)
