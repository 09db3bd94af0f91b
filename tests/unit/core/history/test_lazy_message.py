"""Messages of a stored session stay bytes until something needs them."""

from __future__ import annotations

from threading import Barrier, Event, Thread, current_thread

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.history.entries import (
    Appended,
    Branched,
    Compacted,
    Entry,
    Item,
    ModelSet,
    PinSet,
    Pruned,
    Redone,
    Stub,
    Undone,
    UsageReported,
)
from compactd.core.history.lazy_message import LazyMessage
from compactd.core.history.pins import pinned_of
from compactd.core.history.projection import Pending, project
from compactd.core.history.state import SessionState, replay
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, Message, Usage
from tests.support.conversations import LETTERS

TEXTS = ("Fix the cache", "", "pinned?", "<tag>", '漢字 \\ "quoted"')
CALL = {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a.py"}}
RESULT = {"type": "tool_result", "call_id": "c1", "content": "y" * 40}


class Counting:
    """Decodes, and remembers what."""

    def __init__(self) -> None:
        self.decoded: list[bytes] = []

    def __call__(self, raw: Raw) -> Message:
        self.decoded.append(bytes(raw))
        return decode_message(raw)


def said(number: int, content: object, role: str = "user", **fields: object) -> Appended:
    return appended(number, msgspec.json.encode({"role": role, "content": content, **fields}))


def appended(number: int, raw: bytes) -> Appended:
    return Appended(
        id=f"e{number}",
        at=float(number),
        tokens=(10, "chars4"),
        message=Raw(raw),
        parent=f"e{number - 1}" if number > 1 else None,
        client_id=f"m{number}",
    )


def conversation(length: int) -> list[Appended]:
    """User and assistant in turns."""
    return [said(n, f"words {n}", role="user" if n % 2 else "assistant") for n in range(1, length + 1)]


# --- what is decoded ----------------------------------------------------------------------------------


def test_a_fold_decodes_no_more_than_the_message_that_gives_the_title() -> None:
    decode = Counting()

    state = replay(conversation(50), decode)

    assert state.shown_title == "words 1"
    assert (len(decode.decoded), state.items_tokens, state.leaf) == (1, 500, "e50")


def test_a_message_is_decoded_when_it_is_asked_for_and_once() -> None:
    decode, entries = Counting(), conversation(50)
    state = replay(entries, decode)
    item = state.items[30]
    assert not item.is_decoded

    messages = [item.message, item.message, state.originals["e31"].message]

    assert item.is_decoded
    assert all(message is messages[0] for message in messages)
    assert decode.decoded[1:] == [bytes(entries[30].message)]


def test_the_pending_calls_are_found_without_what_came_before_the_call() -> None:
    decode = Counting()
    entries = [*conversation(50), said(51, [CALL], "assistant"), said(52, [RESULT], "tool")]
    state = replay(entries[:-1], decode)
    answered = replay(entries, Counting())

    assert Pending(state.items).call_ids == ("c1",)
    assert Pending(answered.items).call_ids == ()
    assert len(decode.decoded) == 2, "the title, the call"


def test_a_compaction_does_not_decode_what_it_took_out_of_the_view() -> None:
    decode = Counting()

    state = replay([*conversation(50), compacted(51, "e41", 2)], decode)

    assert [item.is_decoded for item in state.items] == [True] + [False] * 10
    assert len(decode.decoded) == 1


def test_a_message_given_decoded_is_not_decoded_again() -> None:
    decode, entries = Counting(), conversation(2)
    state = SessionState(decode)

    for entry in entries:
        state.apply(entry, decode_message(entry.message))

    assert [item.message.content[0].text for item in state.items] == ["words 1", "words 2"]
    assert decode.decoded == []


def test_an_item_of_bytes_equals_the_item_of_the_message_they_hold() -> None:
    raw = conversation(1)[0].message
    held = Item(entry_id="e1", body=LazyMessage(raw, decode_message), tokens=1)
    given_decoded = Item(entry_id="e1", body=decode_message(raw), tokens=1)
    other = Item(entry_id="e1", body=decode_message(b'{"role":"user","content":"other"}'), tokens=1)

    assert held == given_decoded
    assert given_decoded == held
    assert held == Item(entry_id="e1", body=LazyMessage(raw, decode_message), tokens=1)
    assert hash(held) == hash(given_decoded)
    assert held != other
    assert LazyMessage(raw, decode_message) != "words 1"


def test_a_message_that_was_let_go_says_the_same_and_who_holds_it_keeps_it() -> None:
    raw = conversation(1)[0].message
    body = LazyMessage(raw, decode_message)
    held = body.message
    body.drop_decoded()

    assert not body.is_decoded
    assert body.message == held
    assert body.message is not held


def test_of_two_threads_that_ask_at_the_same_time_both_get_the_first_ones_message() -> None:
    both_are_at_it, first_is_done = Barrier(2, timeout=20), Event()
    got: list[Message] = []

    def slowly(raw: Raw) -> Message:
        both_are_at_it.wait()
        if current_thread() is second:
            first_is_done.wait(20)
        return decode_message(raw)

    def ask() -> None:
        got.append(body.message)
        first_is_done.set()

    body = LazyMessage(conversation(1)[0].message, slowly)
    first, second = Thread(target=ask), Thread(target=ask)
    for thread in (first, second):
        thread.start()
    for thread in (first, second):
        thread.join()

    assert len(got) == 2
    assert got[0] is got[1] is body.message


def test_a_message_that_cannot_be_decoded_is_told_every_time_and_harms_no_other() -> None:
    state = replay([*conversation(3), appended(4, b'{"role":"wizard","content":"x"}')], decode_message)

    for _ in range(2):
        with pytest.raises(Exception, match="role must be one of"):
            _ = state.items[3].message

    assert state.items[2].message.content[0].text == "words 3"
    assert not state.items[3].is_decoded


# --- the law ------------------------------------------------------------------------------------------


def compacted(number: int, first_kept: str | None, epoch: int, stubs: tuple[Stub, ...] = ()) -> Compacted:
    return Compacted(
        id=f"e{number}",
        at=float(number),
        compaction_id=f"c{number}",
        epoch=epoch,
        summary=f"summary {number}",
        summary_tokens=3,
        result=CompactionResult(compacted=True),
        parent=f"e{number - 1}",
        first_kept=first_kept,
        stubs=stubs,
    )


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Every kind of message that an opening could get wrong."""
    text = draw(st.sampled_from(TEXTS))
    kind = draw(st.sampled_from(("user", "assistant", "call", "result", "mixed", "system")))
    content: object = {
        "call": [{"type": "text", "text": text}, CALL],
        "result": [RESULT],
        "mixed": [RESULT, {"type": "text", "text": text}],
    }.get(kind, text)
    role = {"call": "assistant", "result": "tool", "mixed": "user"}.get(kind, kind)
    fields: dict[str, object] = {"role": role, "content": content}
    meta = draw(st.sampled_from((None, {"pinned": True}, {"pinned": False}, {"synthetic": True}, {})))
    if meta is not None:
        fields["meta"] = meta
    raw = msgspec.json.encode(fields)
    return raw.replace(b'"pinned"', b'"pi\\u006ened"') if draw(st.booleans()) else raw


@st.composite
def journals(draw: st.DrawFn) -> list[Entry]:
    """The entries of a session, such as its writer could have made them."""
    entries: list[Entry] = []
    state = SessionState(decode_message)
    for _ in range(draw(st.integers(0, 25))):
        number = int(state.next_id[1:])
        here = [entry_id for entry_id in state.path if entry_id in state.originals]
        epoch = state.epoch + 1
        acts = ["message"] * 6 + (["compact", "prune", "branch", "pin", "usage", "model"] if here else [])
        acts += ["undo"] * (state.in_force.last is not None) + ["redo"] * (
            state.in_force.last_undone is not None
        )
        entry: Entry
        match draw(st.sampled_from(acts)):
            case "message":
                entry = appended(number, draw(messages()))
            case "compact":
                entry = compacted(number, draw(st.sampled_from([*here, None])), epoch)
            case "prune":
                results = [i for i in here if state.originals[i].message.role == "tool"]
                stubs = tuple(Stub(entry_id=i, texts=((0, "[gone]"),), tokens=2) for i in results)
                entry = Pruned(id=f"e{number}", at=0.0, epoch=epoch, stubs=stubs)
            case "branch":
                entry = Branched(at=0.0, entry_id=draw(st.sampled_from(here)), epoch=epoch)
            case "pin":
                entry = PinSet(at=0.0, entry_ids=(draw(st.sampled_from(here)),), pinned=draw(st.booleans()))
            case "usage":
                entry = UsageReported(at=0.0, usage=Usage(input_tokens=70), epoch=state.epoch)
            case "model":
                entry = ModelSet(at=0.0, model="acme/one", epoch=epoch)
            case "undo":
                step = state.in_force.last
                entry = Undone(at=0.0, target=step.id if step else "", epoch=epoch)
            case _:
                step = state.in_force.last_undone
                entry = Redone(at=0.0, target=step.id if step else "", epoch=epoch)
        if isinstance(entry, Appended | Compacted | Pruned):
            entry = msgspec.structs.replace(entry, parent=state.leaf)
        state.apply(entry)
        entries.append(entry)
    return entries


def observed(state: SessionState) -> dict[str, object]:
    """Return everything that a session reads from its fold."""
    return {
        "title": state.shown_title,
        "view": state.view(),
        "pending": Pending(state.path_items()).call_ids,
        "pinned": pinned_of(state.originals.values(), state.pin_marks),
        "pinned by id": state.pinned_by_id(),
        "projection": project(state.view().items, LETTERS),
        "originals": state.originals,
        "path": state.path_items(),
        "clients": state.clients,
        "times": state.times,
        "sizes": (state.size, state.estimated_size, state.epoch, state.last_prompt_tokens),
        "timeline": state.timeline,
        "steps": (state.in_force.steps, state.in_force.last, state.in_force.last_undone),
        "bill": state.billing.prompt,
    }


def pinned_by_definition(entries: list[Entry]) -> set[str]:
    pinned: set[str] = set()
    for entry in entries:
        if isinstance(entry, PinSet):
            (pinned.update if entry.pinned else pinned.difference_update)(entry.entry_ids)
        elif isinstance(entry, Appended):
            meta = decode_message(entry.message).meta
            if meta is not None and meta.pinned:
                pinned.add(entry.id)
    return pinned


@given(journals())
def test_a_session_opened_from_bytes_is_the_session_that_its_writer_had(entries: list[Entry]) -> None:
    written = SessionState(decode_message)
    for entry in entries:
        written.apply(entry, decode_message(entry.message) if isinstance(entry, Appended) else None)

    opened = replay(entries, decode_message)

    assert observed(opened) == observed(written)
    assert set(pinned_of(opened.originals.values(), opened.pin_marks)) == pinned_by_definition(entries)
