"""Reduced outputs in the fold: whatever another program wrote between them, such as a hook."""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from compactd.core.history.entries import Appended, Entry, Opened, OutputLink, Reduced
from compactd.core.history.state import SessionState, replay
from compactd.core.redaction.redaction import Codec, redact
from compactd.core.tokens.counting import Chars4, message_tokens
from compactd.formats.files.compactd_file import read
from compactd.formats.files.journal_messages import decoder_of
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Message, Text, ToolResult
from compactd.storage.journal_records import encode_journal


def said(entry_id: str, parent: str | None, text: str = "Go on.") -> Appended:
    message = Message(role="user", content=(Text(text=text),))
    return Appended(
        id=entry_id, at=1.0, tokens=(2, "chars4"), message=Raw(encode_message(message)), parent=parent
    )


def answered(entry_id: str, parent: str | None, call_id: str, text: str) -> Appended:
    message = Message(role="tool", content=(ToolResult(call_id=call_id, content=text),))
    return Appended(
        id=entry_id, at=1.0, tokens=(2, "chars4"), message=Raw(encode_message(message)), parent=parent
    )


def reduced(entry_id: str, parent: str | None, call_id: str | None, text: str = "all of it") -> Reduced:
    message = Message(role="tool", content=(ToolResult(call_id=call_id or "", content=text),))
    return Reduced(
        id=entry_id,
        at=1.0,
        tokens=(3, "chars4"),
        name="bash",
        message=Raw(encode_message(message)),
        shown="part",
        tokens_shown=1,
        rules=("repeats",),
        level="default",
        parent=parent,
        call_id=call_id,
    )


def folded(*entries: Entry) -> SessionState:
    whole = (Opened(v=1, id="s", at=0.0), *entries)
    return replay(whole, decoder_of(whole))


def test_a_message_of_a_hook_follows_the_entry_before_the_outputs() -> None:
    entries = (said("e1", None), reduced("e2", "e1", "c1"), reduced("e3", "e1", "c2"), said("e4", "e3"))

    state = folded(*entries)

    assert state.path == ["e1", "e4"]
    assert state.next_id == "e5"
    assert [item.entry_id for item in state.path_items()] == ["e1", "e4"]
    assert [message.role for message, _ in read(journal(*entries)).messages] == ["user", "user"]


def test_a_result_of_a_hook_is_linked_by_its_call_id() -> None:
    state = folded(
        said("e1", None), reduced("e2", "e1", "c1"), answered("e3", "e2", "c1", "part"), said("e4", "e3")
    )

    assert state.outputs.links == {"e3": (OutputLink(0, None, "e2", True),)}
    assert state.outputs.shown_in == {"e2": ("e3",)}
    assert state.outputs.loose == {}


@pytest.mark.parametrize(("call_id", "text"), [("c2", "part"), ("c1x", "c1")])
def test_a_result_of_another_call_is_not_linked(call_id: str, text: str) -> None:
    state = folded(said("e1", None), reduced("e2", "e1", "c1"), answered("e3", "e1", call_id, text))

    assert state.outputs.links == {}


def test_a_call_id_that_comes_again_is_linked_to_the_newest_output() -> None:
    state = folded(
        reduced("e1", None, "c1"),
        answered("e2", None, "c1", "part"),
        answered("e3", "e2", "c1", "another"),
        reduced("e4", "e3", "c1"),
        answered("e5", "e3", "c1", "part"),
    )

    assert {message: [link.output for link in links] for message, links in state.outputs.links.items()} == {
        "e2": ["e1"],
        "e5": ["e4"],
    }


def test_outputs_that_name_each_other_as_their_parents_end_nothing() -> None:
    state = folded(reduced("e1", "e2", "c1"), reduced("e2", "e1", "c2"), said("e3", "e2"))

    assert state.path == ["e3"]


@pytest.mark.parametrize("named", ["e2", "e3"])
def test_what_a_hook_wrote_is_redacted_with_its_original(named: str) -> None:
    whole = (
        Opened(v=1, id="s", at=0.0),
        said("e1", None, "Where is the loader?"),
        reduced("e2", "e1", "c1", "hunter2secret\nand more"),
        answered("e3", "e2", "c1", "part of hunter2secret"),
    )
    codec = Codec(decoder_of(whole), encode_message, lambda one: message_tokens(one, Chars4()), "chars4")

    done = redact(whole, frozenset((named,)), codec)

    assert done.entry_ids == ("e2", "e3")
    after = [done.changes.get(at, entry) for at, entry in enumerate(whole)]
    assert b"hunter2secret" not in b"".join(msgspec.json.encode(entry) for entry in after)


def journal(*entries: Entry) -> bytes:
    whole = (Opened(v=1, id="s", at=0.0), *entries)
    return b"".join(encode_journal([msgspec.json.encode(entry) for entry in whole]))
