"""A user's text, split into what the user typed and what is between it."""

from __future__ import annotations

from hypothesis import given, settings

from compactd.core.constraints.typed_stretches import typed_stretches
from compactd.core.constraints.user_text import typed_sentences
from compactd.core.history.entries import Item
from compactd.core.text.quoting import visible_lines
from compactd.protocol.messages import BlockMeta, Message, Text
from tests.support.examples import examples
from tests.support.pastes import PASTES


def split(text: str, *, author: str | None = None) -> list[tuple[str, str]]:
    block = Text(text=text, meta=None if author is None else BlockMeta(author=author))
    message = Message(role="user", content=(block,))
    return [(one.kind, text[one.start : one.end]) for one in typed_stretches(message, block)]


def test_code_quotations_and_tags_are_framed_and_log_lines_are_bare() -> None:
    text = (
        "Mend it.\n```\ncode()\n```\nIt says:\n2026-11-27 10:00:00 started\n> quoted\n"
        "<file>\ntext\n</file>\nNever touch a.py."
    )

    assert split(text) == [
        ("typed", "Mend it.\n"),
        ("framed", "```\ncode()\n```\n"),
        ("typed", "It says:\n"),
        ("bare", "2026-11-27 10:00:00 started\n"),
        ("framed", "> quoted\n"),
        ("framed", "<file>\ntext\n</file>"),
        ("typed", "\nNever touch a.py."),
    ]


def test_the_middle_of_a_long_text_is_bare() -> None:
    kinds = [kind for kind, _ in split("Do this and that. " * 1_000)]

    assert kinds == ["typed", "bare", "typed"]


def test_a_tag_around_typed_words_and_a_few_blank_lines_belong_to_them() -> None:
    text = "<task>\nMend it.\n\n\nThanks.\n</task>\n"

    assert split(text) == [("typed", text)]


def test_many_blank_lines_are_not_typed() -> None:
    assert [kind for kind, _ in split("Mend it.\n" + "\n" * 900 + "Thanks.")] == ["typed", "bare", "typed"]


def test_a_reminder_is_framed_and_a_named_author_names_the_whole_block() -> None:
    reminder = "<system-reminder>Be brief.</system-reminder>"

    assert split(f"Mend it.{reminder}") == [("typed", "Mend it."), ("framed", reminder)]
    assert split(f"{reminder}Mend it.") == [("framed", reminder), ("typed", "Mend it.")]
    assert split("Mend it.", author="file") == [("named", "Mend it.")]


@given(PASTES)
@settings(deadline=None, max_examples=examples(60))
def test_stretches_cover_the_text_and_the_typed_ones_hold_what_was_typed(text: str) -> None:
    block = Text(text=text)
    message = Message(role="user", content=(block,))
    sentences = list(typed_sentences(Item(entry_id="e1", body=message, tokens=1)))

    stretches = split(text)
    typed = visible_lines("\n".join(part for kind, part in stretches if kind == "typed"))

    assert "".join(part for _, part in stretches) == text
    for one in sentences:
        assert all(line in typed for line in one.lines or one.text.split())
    if not sentences:
        assert not any(word.isalpha() for word in typed.split())
