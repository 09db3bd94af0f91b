"""How a redaction changes the entries of a journal."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import Appended, Compacted, Entry, Queued, SettingsSet, Unqueued
from compactd.core.redaction.blank_message import blank
from compactd.core.redaction.redaction import Codec, redact
from compactd.core.redaction.scrub import MARK, MAX_PIECE_CHARS, PIECE_CHARS, distinct_words, scrubber
from compactd.core.tokens.counting import Chars4, message_tokens
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import CompactionResult, Message, Meta, Strategy, Text, Thinking, ToolCall

CODEC = Codec(decode_message, encode_message, lambda message: message_tokens(message, Chars4()), "chars4")


def said(entry_id: str, text: str) -> Appended:
    raw = encode_message(Message(role="user", content=(Text(text=text),)))
    return Appended(id=entry_id, at=0.0, tokens=(99, "other"), message=Raw(raw))


def compacted(summary: str, strategy: Strategy = "extract") -> Compacted:
    return Compacted(
        id="e9",
        at=0.0,
        compaction_id="c1",
        epoch=2,
        summary=summary,
        summary_tokens=7,
        result=CompactionResult(compacted=True, strategy=strategy),
    )


def summary_after(entries: Sequence[Entry], *ids: str) -> str:
    changed = redact(entries, frozenset(ids), CODEC).changes
    last = changed.get(len(entries) - 1, entries[-1])
    assert isinstance(last, Compacted)
    return last.summary


def test_only_what_says_something_of_it_changes() -> None:
    entries = (said("e1", "the password is hunter2hunter2"), said("e2", "thanks"), compacted("nothing"))

    changed = redact(entries, frozenset(("e1",)), CODEC).changes

    assert list(changed) == [0]
    entry = changed[0]
    assert isinstance(entry, Appended)
    assert decode_message(entry.message).content == (Text(text=MARK),)
    assert entry.tokens == (3, "chars4")


def test_a_word_goes_wherever_it_stands_in_a_copy_and_what_was_cut_off_it_too() -> None:
    entries = (
        said("e1", "use AKIA-99-abcdefghijkl, my dear"),
        compacted("key=`AKIA-99-abcdefghijkl` or **abcdefghijkl**; it began AKIA-99-abcd… (cut)"),
    )

    assert summary_after(entries, "e1") == f"key=`{MARK}` or **{MARK}**; it began {MARK}… (cut)"


def test_words_of_others_stay() -> None:
    entries = (
        said("e1", "never push to origin, the token is 1f2e3d4c5b"),
        said("e2", "which origin of the token do you mean?"),
        compacted("a token for origin is given"),
    )

    assert summary_after(entries, "e1") == "a token for origin is given"


def test_short_words_go_where_they_stand_by_themselves_and_nowhere_inside_others() -> None:
    entries = (
        said("e1", "PIN 48213, room 7b, sign x#9!k, 密码是四二一三, is my own"),
        compacted("its PIN=48213; 148213 files in 7b and 7bc; (x#9!k) 四二一三 [e3]: my own, pinned"),
    )

    assert summary_after(entries, "e1") == (
        f"its {MARK}={MARK}; 148213 files in {MARK} and 7bc; ({MARK}) {MARK} [e3]: my {MARK}, pinned"
    )


def test_a_summary_in_a_models_words_is_made_anew_of_what_is_left() -> None:
    entries = (
        said("e1", "the pin is 48213"),
        said("e2", "Never touch src/parser.py again."),
        said("e3", "go on"),
        compacted("## Goal\nforty-eight thousand two hundred and thirteen " * 9, strategy="summarize"),
    )

    done = redact(entries, frozenset(("e1",)), CODEC)

    summary = done.changes[3]
    assert isinstance(summary, Compacted)
    assert ("forty" in summary.summary, "Never touch src/parser.py again." in summary.summary) == (
        False,
        True,
    )
    assert summary.result.strategy == "extract"
    assert {one.where: one.entry_ids for one in done.cleaned}["summary"] == ("e9",)
    assert redact(entries, frozenset(("e1",)), CODEC).changes == done.changes


def test_a_models_summary_of_other_messages_stays_word_for_word() -> None:
    kept = msgspec.structs.replace(compacted("as the model said", strategy="summarize"), first_kept="e2")
    entries = (said("e1", "first"), said("e2", "the pin is 48213"), kept)

    assert list(redact(entries, frozenset(("e2",)), CODEC).changes) == [1]


def test_what_holds_a_word_still_is_named_without_the_word() -> None:
    entries = (
        SettingsSet(at=0.0, system_prompt="dial 48213"),
        said("e1", "the pin is 48213"),
        said("e2", "was it 48213?"),
        said("e3", "in 2024 there were 148213 of them"),
    )

    left = redact(entries, frozenset(("e1",)), CODEC).left

    assert [(one.where, one.entry_ids) for one in left] == [("messages", ("e2",)), ("settings", ())]
    assert not any("48213" in one.why for one in left)


def test_lines_that_name_the_message_as_their_source_go_whole() -> None:
    summary = "\n".join(
        [
            "## Goal",
            "- tell 12 to 34 [e1]",
            "- other things [e2]",
            "[e1 run 12 34] failed",
            "- [x] e1 run 12",
            "- e11 run 12: failed",
        ]
    )

    assert summary_after((said("e1", "x"), compacted(summary)), "e1").split("\n") == [
        "## Goal",
        f"- {MARK} [e1]",
        "- other things [e2]",
        f"{MARK} [e1]",
        f"- [x] {MARK} [e1]",
        "- e11 run 12: failed",
    ]


def test_a_line_of_short_words_goes_where_only_the_message_said_it() -> None:
    entries = (
        said("e1", "ok:\npin 12 34 56"),
        said("e2", "say 12 34"),
        compacted("(tool) pin 12 34 56 [e5]"),
    )

    assert summary_after(entries, "e1") == f"(tool) {MARK} [e5]"


def test_what_a_record_consists_of_stays() -> None:
    summary = "## Constraints & Preferences\n(none)\n## Critical Context\n<read-files>\nx\n</read-files>"
    entries = (said("e1", "Constraints & Preferences, Critical Context, read-files"), compacted(summary))

    assert summary_after(entries, "e1") == summary


def test_a_prompt_that_became_the_message_goes_with_it_and_one_that_waits_loses_the_words() -> None:
    taken, waiting = (
        encode_message(Message(role="user", content=(Text(text=text),)))
        for text in ("pin 12", "is secret123456 right?")
    )
    entries = (
        Queued(at=0.0, turn_id="t1", message=Raw(taken)),
        Appended(id="e1", at=0.0, tokens=(1, "chars4"), message=Raw(taken)),
        Unqueued(at=0.0, turn_id="t1"),
        said("e2", "secret123456"),
        Queued(at=0.0, turn_id="t2", message=Raw(waiting)),
    )

    changed = redact(entries, frozenset(("e1", "e2")), CODEC).changes

    texts = [decode_message(entry.message).content for entry in changed.values() if isinstance(entry, Queued)]
    assert texts == [(Text(text=MARK),), (Text(text=f"is {MARK} right?"),)]


def test_what_the_client_set_for_the_whole_session_is_not_the_messages() -> None:
    entries = (
        SettingsSet(
            at=0.0, system_prompt="Speak like Shakespeare", title="about Shakespeare and hunter2hunter2"
        ),
        said("e1", "Shakespeare hunter2hunter2"),
    )

    changed = redact(entries, frozenset(("e1",)), CODEC).changes

    assert changed[0] == SettingsSet(
        at=0.0, system_prompt="Speak like Shakespeare", title=f"about Shakespeare and {MARK}"
    )


def test_empty_text_stays_empty_and_a_signature_goes_with_its_thinking() -> None:
    message = Message(
        role="assistant",
        content=(Text(text=""), Thinking(text="hm", signature="s"), ToolCall(call_id="c", name="f")),
        stop_reason="tool_use",
    )

    assert blank(message).content == (
        Text(text=""),
        Thinking(text=MARK),
        ToolCall(call_id="c", name="f", arguments=Raw(b'{"redacted":"[redacted]"}')),
    )
    assert (blank(message).stop_reason, blank(blank(message))) == ("tool_use", blank(message))


def test_fields_of_a_client_that_can_hold_words_hold_none_when_it_is_redacted() -> None:
    usage = (
        b'{"input_tokens":5,"cost":{"usd":0.1,"by":"hunter2"},"hunter2":1,"a b":2,"by":"hunter2","ok":true}'
    )
    message = Message(
        role="user",
        content=(Text(text="x"),),
        usage=Raw(usage),
        stop_reason="hunter2",
        meta=Meta(type="hunter2", kind="hunter2", author="hunter2"),
    )

    left = blank(message)

    assert (left.stop_reason, left.meta) == (None, Meta(author="unknown"))
    assert msgspec.json.decode(left.usage or b"") == {"input_tokens": 5, "cost": {"usd": 0.1}}
    assert blank(left) == left


@pytest.mark.parametrize(
    "meta", [Meta(type="compaction_summary"), Meta(kind="bash_execution", author="tool")]
)
def test_what_says_that_no_person_wrote_a_message_stays_when_it_is_redacted(meta: Meta) -> None:
    message = Message(role="user", content=(Text(text="x"),), stop_reason="end_turn", meta=meta)

    assert (blank(message).meta, blank(message).stop_reason) == (meta, "end_turn")


@given(
    secret=st.text(min_size=1, max_size=60),
    around=st.lists(st.text(max_size=30), min_size=2, max_size=2),
    other=st.text(max_size=60),
)
def test_no_word_that_only_the_redacted_text_holds_is_left_in_a_copy(
    secret: str, around: list[str], other: str
) -> None:
    words = set(distinct_words(secret)) - set(distinct_words(other))

    cleaned = scrubber([secret], [other], [secret.join(around)], frozenset()).text(secret.join(around))

    assert [word for word in words if word in cleaned and word not in MARK] == []


def test_a_line_of_a_million_blanks_is_no_riddle() -> None:
    line = "- (tool) " + " " * 1_000_000 + "x [e1]"

    assert scrubber(["secret12"], [], [line], frozenset(("e1",))).text(line) == f"- {MARK} [e1]"


@pytest.mark.parametrize("shift", range(-14, 3))
def test_a_word_of_another_message_is_found_wherever_in_a_long_text_it_stands(shift: int) -> None:
    filler = "so on " * (PIECE_CHARS // 6)
    other = filler[: PIECE_CHARS + shift - 1] + " password9 " + filler

    cleaned = scrubber(["password9 secret77"], [other], ["secret77, password9"], frozenset())

    assert cleaned.text("secret77, password9") == f"{MARK}, password9"


@pytest.mark.parametrize("shift", range(-14, 3))
def test_a_word_is_found_wherever_in_a_long_redacted_text_it_stands(shift: int) -> None:
    filler = "so on " * (PIECE_CHARS // 6)
    secret = filler[: PIECE_CHARS + shift - 1] + " key=secret77/x " + filler

    cleaned = scrubber([secret], [], ["the secret77 of", "and cret77/x", "pass"], frozenset())

    assert [cleaned.text(text) for text in ("the secret77 of", "and cret77/x", "pass")] == [
        f"the {MARK} of",
        f"and {MARK}",
        "pass",
    ]


def test_a_run_without_an_end_is_looked_at_in_pieces() -> None:
    blob = "QUJD" * MAX_PIECE_CHARS
    longest = max(len(word) for word in distinct_words(f"{blob} {blob[:50]}"))

    assert longest <= MAX_PIECE_CHARS
