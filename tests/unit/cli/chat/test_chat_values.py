"""What a chat shows, and how it parses a line: pure functions, without a terminal or a daemon."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.cli.chat.gauge import gauge_look, gauge_text, window_text
from compactd.cli.chat.input import (
    COMMANDS,
    KEYS,
    OwnCommand,
    compact_params,
    complete_line,
    help_text,
    matching_commands,
    no_compaction_text,
    parse_own_command,
)
from compactd.cli.chat.markdown import lay_out
from compactd.cli.chat.pieces import (
    AnswerPiece,
    CallPiece,
    CompactionPiece,
    NotePiece,
    PromptPiece,
    ResultPiece,
    call_line,
    display_text,
    left_behind,
    pieces_of,
    rule_texts,
    short,
)
from compactd.cli.chat.prompt import complete_name
from compactd.cli.chat.start import why_no_app_in
from compactd.cli.chat.styles import DARK, LIGHT, theme_name
from compactd.cli.chat.usage_chart import CELLS, ChartEntry, cells_of, gauge_of, rows_of, threshold_cell
from compactd.cli.chat.welcome import fitting_text, welcome_texts
from compactd.cli.framework.session_rows import session_line, shown_sessions
from compactd.cli.inspect.anatomy import MessagePlace, anatomy_of
from compactd.core.tokens.counting import ScriptAware
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, Retention, TokenUsage
from compactd.protocol.wire import HistoryEntry, SessionInfo


def entry(name: str, role: str, content: object, *, in_context: bool = True, **more: object) -> HistoryEntry:
    raw = msgspec.json.encode({"role": role, "content": content})
    return msgspec.convert(
        {
            "entry_id": name,
            "kind": "message",
            "at": 0.0,
            "in_context": in_context,
            "message": Raw(raw),
            **more,
        },
        HistoryEntry,
    )


DONE = CompactionResult(
    compacted=True,
    compaction_id="c1",
    trigger="manual",
    strategy="extract",
    messages_before=60,
    messages_after=20,
    messages_removed=41,
    tokens_before=158_000,
    tokens_after=16_000,
    tokens_saved=142_000,
    first_kept_entry_id="e3",
    kept_messages=1,
    summary="## Goal\nx",
    retention=Retention(score=0.87, kept=87, lost=("x",)),
)


def compaction(name: str, *, in_context: bool = True) -> HistoryEntry:
    return HistoryEntry(entry_id=name, kind="compaction", at=0.0, in_context=in_context, compaction=DONE)


def usage(
    used: int,
    window: int | None,
    *,
    confidence: str = "fact",
    threshold: int | None = None,
    decision: str = "fits",
) -> TokenUsage:
    return msgspec.convert(
        {
            "current_context_tokens": used,
            "current_context_source": "mixed",
            "context_window": window,
            "context_window_confidence": confidence,
            "threshold_tokens": threshold,
            "decision": decision,
            "percent": 100 * used / window if window else None,
            "epoch": 1,
        },
        TokenUsage,
    )


# --- lines -----------------------------------------------------------------------------------------


def test_a_line_that_begins_with_a_command_is_one() -> None:
    assert parse_own_command("/compact the search") == OwnCommand("/compact", "the search")
    assert parse_own_command("  /UNDO ") == OwnCommand("/undo", "")


@pytest.mark.parametrize("line", ["hello", "/etc/passwd is what?", "what does /undo do?", "2/3"])
def test_a_path_or_a_slash_in_a_sentence_is_a_prompt(line: str) -> None:
    assert parse_own_command(line) is None


def test_a_command_that_is_none_is_told_with_the_nearest() -> None:
    with pytest.raises(ValueError, match="no command /compct; did you mean /compact"):
        parse_own_command("/compct")
    with pytest.raises(ValueError, match="/help lists"):
        parse_own_command("/zzz")


def test_what_a_compaction_takes_is_read_in_any_order() -> None:
    assert compact_params("") == {}
    assert compact_params("the search --keep 10") == {"keep_messages": 10, "instructions": "the search"}
    assert compact_params("--keep=3 files") == {"keep_messages": 3, "instructions": "files"}
    with pytest.raises(ValueError, match="--keep needs"):
        compact_params("--keep")
    with pytest.raises(ValueError, match="'x'"):
        compact_params("--keep x")


def test_a_name_is_completed_as_far_as_it_is_certain() -> None:
    assert complete_line("/und") == "/undo "
    assert complete_line("/co") == "/co"
    assert complete_line("/com") == "/compact "
    assert complete_line("hello") == "hello"
    assert [one.name for one in matching_commands("/s")] == ["/search", "/sessions"]
    assert len(matching_commands("/")) == len(COMMANDS)
    assert complete_name("/model anthropic/claude-sonnet-4-5-2").startswith(
        "/model anthropic/claude-sonnet-4-5-2025"
    )


# --- pieces ----------------------------------------------------------------------------------------


def test_a_history_becomes_prompts_answers_calls_and_compactions() -> None:
    call = {"type": "tool_call", "call_id": "t1", "name": "bash", "arguments": {"command": "ls"}}
    result = {"type": "tool_result", "call_id": "t1", "content": "a\nb", "is_error": True}

    pieces = list(
        pieces_of(
            [
                entry("e1", "user", "Look."),
                entry("e2", "assistant", [{"type": "text", "text": "I look."}, call]),
                entry("e3", "tool", [result]),
                compaction("e4"),
            ]
        )
    )

    assert pieces == [
        PromptPiece("Look."),
        AnswerPiece("I look."),
        CallPiece("t1", "bash", "ls"),
        ResultPiece("t1", "", "a\nb", True, False),
        CompactionPiece(DONE, True),
    ]


def test_a_branch_that_was_left_is_one_quiet_line() -> None:
    entries = [
        entry("e1", "user", "one"),
        entry("e2", "user", "two", in_context=False),
        entry("e3", "assistant", "2", in_context=False),
        entry("e4", "user", "three"),
    ]

    assert left_behind(entries) == {"e2", "e3"}
    assert list(pieces_of(entries, left_behind(entries))) == [
        PromptPiece("one"),
        NotePiece("2 entries of another branch, not in the context"),
        PromptPiece("three"),
    ]


def test_what_a_compaction_took_was_not_left() -> None:
    entries = [
        entry("e1", "user", "one", in_context=False),
        entry("e2", "assistant", "1", in_context=False),
        entry("e3", "user", "two"),
        compaction("e4"),
        entry("e5", "user", "three", in_context=False),
    ]

    assert left_behind(entries) == {"e5"}


@settings(deadline=None)
@given(st.text())
def test_nothing_that_is_shown_commands_a_terminal(text: str) -> None:
    seen = display_text(text)

    assert not any(ord(c) < 0x20 and c != "\n" for c in seen)
    assert not any(
        0x7F <= ord(c) < 0xA0 or 0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in seen
    )


def test_a_call_says_what_came_of_it() -> None:
    call = CallPiece("t1", "bash", "ls")

    assert call_line(call, None) == "bash  ls"
    assert call_line(call, ResultPiece("t1", "", "a\nb", False, False)) == "bash  ls · 2 lines"
    assert call_line(None, ResultPiece("t1", "bash", "", True, True)) == (
        "bash · 0 lines · failed · shortened in the context"
    )


def test_a_rule_tells_less_where_there_is_less_room() -> None:
    assert list(rule_texts(DONE, is_in_force=True)) == [
        "compacted 41 messages · 158k → 16k · kept 87 % of the repeated details · u undo · enter open",
        "compacted 41 messages · 158k → 16k · kept 87 % · u undo · enter open",
        "compacted 41 messages · 158k → 16k · kept 87 %",
        "compacted 41 messages",
    ]


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (950, "950"),
        (8_400, "8.4k"),
        (9_960, "10k"),
        (158_412, "158k"),
        (999_600, "1.0M"),
        (1_200_000, "1.2M"),
    ],
)
def test_tokens_are_short(tokens: int, text: str) -> None:
    assert short(tokens) == text


# --- gauge -----------------------------------------------------------------------------------------


def test_the_gauge_shows_its_doubt() -> None:
    assert gauge_text(usage(82_000, 200_000)) == "◑ 41 % · 82k/200k"
    assert gauge_text(usage(81_000, 128_000, confidence="guess")) == "◕ ~63 % · 81k/128k?"
    assert gauge_text(usage(500, None)) == "500 tokens, window unknown"


def test_the_gauge_is_quiet_until_something_is_due() -> None:
    assert gauge_look(usage(10, 100, threshold=80)) == ""
    assert gauge_look(usage(80, 100, threshold=80, decision="due")) == "due"
    assert gauge_look(usage(80, 100, threshold=80, decision="fits")) == ""
    assert gauge_look(usage(10, 100, confidence="guess")) == "due"
    assert gauge_look(usage(101, 100, decision="over")) == "bad"


KINDS = st.sampled_from(("summary", "user", "text", "calls", "results"))


@settings(deadline=None)
@given(
    st.lists(st.tuples(KINDS, st.integers(0, 50_000), st.booleans()), max_size=30),
    st.integers(0, 300_000),
    st.integers(1, 400_000),
)
def test_the_bar_has_a_hundred_cells_and_divides_what_the_daemon_said(
    given: list[tuple[str, int, bool]], used: int, window: int
) -> None:
    rows = [
        ChartEntry(
            entry_id=str(at),
            kind=kind,
            tokens=tokens,
            parts={kind: tokens},
            what="",
            is_in_context=inside,
            is_pinned=False,
        )
        for at, (kind, tokens, inside) in enumerate(given)
    ]

    gauge = gauge_of(rows, usage(used, window, threshold=window // 2), is_enabled=True)
    cells = cells_of(gauge)

    assert sum(gauge.parts.values()) == used
    assert min(gauge.parts.values()) >= 0
    assert len(cells) == CELLS
    assert ("·" not in cells) == (used >= window) or used > 0.94 * window
    mark = threshold_cell(gauge)
    assert mark is None or 0 <= mark < CELLS


def test_a_message_is_divided_by_its_blocks_as_inspect_divides_it() -> None:
    """An answer with reasoning and a call is three parts, not one."""
    blocks = [
        {"type": "thinking", "text": "Which file holds the ledger? " * 40},
        {"type": "text", "text": "I look at the ledger. " * 10},
        {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a" * 400}},
    ]
    rows = rows_of([entry("e1", "assistant", blocks, tokens=2_000)], {})
    raw = msgspec.json.encode({"role": "assistant", "content": blocks})

    gauge = gauge_of(rows.values(), usage(2_000, 9_000, threshold=8_000), is_enabled=True)
    inspected = anatomy_of([decode_message(Raw(raw))], [MessagePlace(1, 1)], ScriptAware())

    assert sum(gauge.parts.values()) == 2_000
    whole = sum(inspected.parts.values())
    for part in ("reasoning", "text", "calls"):
        assert gauge.parts[part] == pytest.approx(2_000 * inspected.parts[part] / whole, abs=1)
        assert gauge.parts[part] > 0


def test_the_theme_is_the_chosen_one_or_the_terminals() -> None:
    assert theme_name(None, {}) == DARK.name
    assert theme_name(None, {"COLORFGBG": "0;15"}) == LIGHT.name
    assert theme_name("dark", {"COLORFGBG": "0;15"}) == DARK.name


def test_where_the_app_cannot_be_shown_one_line_says_why() -> None:
    here: dict[str, Any] = {"is_terminal": True, "term": "xterm", "size": (80, 24), "has_textual": True}

    assert why_no_app_in(**here) is None
    assert why_no_app_in(**{**here, "is_terminal": False}) == ""
    assert "pip install" in str(why_no_app_in(**{**here, "has_textual": False}))
    assert "cannot move the cursor" in str(why_no_app_in(**{**here, "term": "dumb"}))
    assert "20 by 24" in str(why_no_app_in(**{**here, "size": (20, 24)}))


def drawn(text: str, width: int = 60) -> list[str]:
    return [line.rstrip() for line in lay_out(text, width, is_dark=True).plain.split("\n")]


def test_line_ends_in_an_answer_stay() -> None:
    pasted = "\n".join(f"line {n}" for n in range(60))

    assert drawn(pasted) == pasted.split("\n")
    assert drawn("**a\nb** c\n\nd") == ["a", "b c", "", "d"]


def test_lists_code_and_tables_are_laid_out_as_such() -> None:
    text = "- a\n- b\n  c\n\n1. x\n\n```py\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"

    lines = [line.strip() for line in drawn(text)]

    assert [line for line in lines if line] == [
        "• a",
        "• b",
        "c",
        "1 x",
        "x = 1",
        "y = 2",
        "a  b",
        "────",
        "1  2",
    ]


def test_a_long_line_is_still_wrapped() -> None:
    assert drawn("word " * 30, 20) == ["word word word word"] * 7 + ["word word"]


def session(name: str, **more: object) -> SessionInfo:
    values = {"title": None, "model": None, "message_count": 0, "compactions": 0, "bytes": 0, "open": False}
    return msgspec.convert({"session_id": name, "updated_at": 1.0, **values, **more}, SessionInfo)


def test_empty_sessions_are_left_out_and_the_newest_is_first() -> None:
    stored = (
        session("old", message_count=2, updated_at=1.0),
        session("unused", updated_at=9.0),
        session("named", title="A plan", updated_at=3.0),
        session("here", message_count=1, updated_at=4.0),
    )

    assert [one.session_id for one in shown_sessions(stored, here="here")] == ["named", "old"]
    everything = [one.session_id for one in shown_sessions(stored, shows_empty=True)]
    assert everything == ["unused", "here", "named", "old"]


def test_a_session_without_a_model_or_a_title_is_told_without_none() -> None:
    assert session_line(session("s1", message_count=1), 1.0) == "just now · s1 · 1 message"


def plan(*, compacted: bool, reason: str = "", before: int = 6) -> CompactionResult:
    return msgspec.structs.replace(DONE, compacted=compacted, reason=reason, messages_before=before)


@pytest.mark.parametrize(
    ("smallest", "more"),
    [
        (None, ""),
        (plan(compacted=True), ". To compact anyway: /compact --keep 1"),
        (plan(compacted=False, before=2), ". There is nothing before the newest prompt to summarise."),
        (plan(compacted=False, before=0), ""),
        (
            plan(compacted=False, reason="too short"),
            ". /compact --keep 1 would not compact either: too short",
        ),
    ],
)
def test_a_refused_compaction_says_what_works(smallest: CompactionResult | None, more: str) -> None:
    reason = "nothing to compact: all 6 messages are within the 20,000 tokens to keep"

    told = no_compaction_text(reason, smallest)

    assert told == f"No compaction needed: all 6 messages are within the 20,000 tokens to keep{more}"


@pytest.mark.parametrize("columns", [20, 38, 78, 118])
def test_the_help_fits_and_names_each_command_and_key(columns: int) -> None:
    text = help_text(columns)

    assert max(map(len, text.split("\n"))) <= max(columns, 29)
    assert [one.name for one in COMMANDS if one.name not in text] == []
    assert [key for key, _ in KEYS if key not in text] == []


@pytest.mark.parametrize("size", [(100, 30), (80, 16), (40, 7), (30, 4), (1, 1)])
def test_the_first_screen_fits_and_says_who_answers(size: tuple[int, int]) -> None:
    columns, lines = size
    text = fitting_text(welcome_texts("a/b", is_echo=False), columns, lines)

    assert sum(-(-len(line) // columns) or 1 for line in text.split("\n")) < lines or lines < 3
    assert "?" in text
    assert ("a/b" in text) is (lines > 3)


def test_a_guessed_window_is_marked() -> None:
    assert window_text(usage(1, 128_000, confidence="guess")) == "window 128,000? tokens (a guess)"
    assert window_text(usage(1, 200_000)) == "window 200,000 tokens"
    assert window_text(usage(1, None)) == "window unknown"
