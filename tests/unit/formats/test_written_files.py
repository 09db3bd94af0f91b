"""Sessions written in other programs' formats and read again: a warning names whatever is lost."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.formats.files.detect import detect, read
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.session_formats import WRITABLE
from compactd.formats.files.write import write
from compactd.formats.messages.neutral_out import encode_message
from compactd.protocol.messages import Block, Image, Message, Meta, Text, Thinking, ToolCall, ToolResult
from tests.support import recorded
from tests.support.examples import examples
from tests.unit.formats.outlined import FIXTURES

OWN = [
    ("codex.jsonl", "codex"),
    ("gemini-cli.jsonl", "gemini-cli"),
    ("cline-task.json", "cline"),
    ("roo.json", "cline"),
    ("opencode.json", "opencode"),
    ("mini-swe-agent-2.traj.json", "mini-swe-agent"),
    ("openhands.json", "openhands"),
    ("aider.md", "aider"),
    ("klaude.jsonl", "klaude"),
    ("opal.jsonl", "opal"),
]


def session(*messages: Message, **about: object) -> SessionFile:
    lines = tuple((message, Raw(encode_message(message))) for message in messages)
    return msgspec.structs.replace(SessionFile(format="neutral", messages=lines), **about)


def said(file: SessionFile) -> list[tuple[object, ...]]:
    """Return the content of each message in a session file, without ids that a writer invents."""
    return [(m.role, m.content, m.created_at, m.usage is None, m.meta) for m, _ in file.messages]


@pytest.mark.parametrize(("name", "format"), OWN, ids=[name for name, _ in OWN])
def test_a_file_written_in_its_own_format_is_read_as_the_same_session(name: str, format: str) -> None:
    file = read((FIXTURES / name).read_bytes())

    written = write(file, format)
    again = read(written.data)

    assert detect(written.data) == format
    assert [row[0] for row in said(again)] == [row[0] for row in said(file)]
    assert (again.compactions, again.first_kept, again.pinned) == (
        file.compactions,
        file.first_kept,
        file.pinned,
    )
    assert again.model == file.model
    assert all(warning in ALLOWED.get(name, ()) for warning in written.warnings), written.warnings


ALLOWED = {
    # A summary of Codex's has no id; the tool results of the other two stand in their answers.
    "openhands.json": ("not kept: how the tool result is split into blocks (3)",),
    "opal.jsonl": (),
    "klaude.jsonl": (),
}


@pytest.mark.parametrize("format", WRITABLE)
def test_writing_what_was_read_of_it_writes_the_same_again(format: str) -> None:
    file = TALK

    once = read(write(file, format).data)
    twice = read(write(once, format).data)

    assert said(twice) == said(once)


PICTURE = Image(media_type="image/png", data="QUJD")
TALK = session(
    Message(role="user", content=(Text(text="Why?"), PICTURE), id="m1", created_at=1_772_359_200.0),
    Message(
        role="assistant",
        content=(
            Thinking(text="hm"),
            Text(text="I look."),
            ToolCall(call_id="c1", name="read", arguments=Raw(b'{"path":"a.py"}')),
            ToolCall(call_id="c2", name="run", arguments=Raw(b'"{\\"cmd\\":\\"ls\\"}"')),
        ),
        id="m2",
        created_at=1_772_359_201.5,
        usage=Raw(b'{"input_tokens":10,"output_tokens":3,"cache_read_tokens":4}'),
        stop_reason="tool_use",
    ),
    Message(role="tool", content=(ToolResult(call_id="c1", name="read", content="x = 1"),), id="m3"),
    Message(
        role="tool", content=(ToolResult(call_id="c2", name="run", content="no", is_error=True),), id="m4"
    ),
    Message(role="user", content=(Text(text="The gist."),), id="m5", meta=Meta(type="compaction_summary")),
    Message(role="user", content=(Text(text="Go on."),), id="m6"),
    session_id="s1",
    title="A talk",
    model="anthropic/claude-opus-4-5",
    working_dir="/repo",
    system_prompt="Be brief.",
    compactions=1,
    first_kept=((4, 1),),
)

LOST = {
    "claude-code": {
        "the model's provider",
        "the system prompt",
        "which messages the summary left in the context",
    },
    "pi": {"the system prompt"},
    "codex": {"the title", "the message's id", "the stop reason"},
    "gemini-cli": {"the system prompt", "the message's id", "the stop reason"},
    "cline": {
        "the title",
        "the working directory",
        "the stop reason",
        "which messages the summary left in the context",
    },
    "opencode": {"the system prompt", "the message's id"},
    "swe-agent": {
        "the session's id",
        "the title",
        "the working directory",
        "the message's id",
        "the time",
        "the usage report",
        "the stop reason",
        "that the call failed",
        "that the message is a summary",
        "which messages the summary left in the context",
    },
    "mini-swe-agent": {
        "the session's id",
        "the title",
        "the message's id",
        "the stop reason",
        "that the message is a summary",
        "which messages the summary left in the context",
    },
    "openhands": {
        "the session's id",
        "the title",
        "the model",
        "the working directory",
        "the usage report",
        "the stop reason",
    },
    "klaude": {"the session's id", "the title", "the working directory", "the message's id"},
}


@pytest.mark.parametrize("format", sorted(LOST))
def test_what_a_format_has_no_place_for_is_listed(format: str) -> None:
    written = write(TALK, format)

    told = {re.sub(r" \([^)]*\)$", "", warning).removeprefix("not kept: ") for warning in written.warnings}
    assert told == LOST[format]


def test_a_loss_names_the_entries_that_it_falls_on() -> None:
    written = write(TALK, "pi", ["e1", "e2", "e3", "e4", "e5", "e6"])
    failed = write(TALK, "swe-agent", ["e1", "e2", "e3", "e4", "e5", "e6"])

    assert written.warnings == ("not kept: the system prompt",)
    assert "not kept: that the call failed (e4)" in failed.warnings
    assert "not kept: the message's id (e1–e6)" in failed.warnings


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=12).filter(
    str.strip
)
IDS = st.uuids().map(str)
TIMES = st.integers(1, 2_000_000_000_000).map(lambda ms: ms / 1000)


@st.composite
def conversations(draw: st.DrawFn) -> SessionFile:
    messages: list[Message] = []
    for number in range(draw(st.integers(1, 5))):
        at = draw(st.none() | TIMES)
        kind = draw(st.sampled_from(("user", "answer", "calls", "summary", "system")))
        id = draw(st.none() | IDS)
        if kind in ("user", "summary", "system"):
            meta = draw(st.sampled_from((None, Meta(synthetic=True)))) if kind == "user" else None
            meta = Meta(type="compaction_summary") if kind == "summary" else meta
            content: tuple[Block, ...] = (Text(text=draw(WORDS)),)
            if kind == "user" and draw(st.booleans()):
                content += (PICTURE,)
            role = "system" if kind == "system" else "user"
            messages.append(Message(role=role, content=content, id=id, created_at=at, meta=meta))
            continue
        blocks: list[Block] = [Text(text=draw(WORDS))] if kind == "answer" or draw(st.booleans()) else []
        if draw(st.booleans()):
            blocks.insert(0, Thinking(text=draw(WORDS), signature=draw(st.none() | st.just("c2ln"))))
        count = draw(st.integers(1, 2)) if kind == "calls" else 0
        calls = [
            ToolCall(call_id=f"c{number}-{i}", name="run", arguments=Raw(b'{\n "a": 1}'))
            for i in range(count)
        ]
        usage = draw(st.none() | st.just(Raw(b'{"input_tokens":5,"output_tokens":2,"cache_write_tokens":1}')))
        messages.append(
            Message(role="assistant", content=(*blocks, *calls), id=id, created_at=at, usage=usage)
        )
        for call in calls:
            result = ToolResult(
                call_id=call.call_id, name="run", content=draw(WORDS), is_error=draw(st.booleans())
            )
            messages.append(Message(role="tool", content=(result,), created_at=at))
    return session(
        *messages, session_id=draw(st.none() | IDS), model=draw(st.none() | st.just("openai/gpt-5"))
    )


LOST_TEXT = (
    "kept: the message (",
    "kept: the summary (",
    "a system message between",
    "part of the text",
    "into blocks",
)
"""Losses that change the texts or the number of messages."""


@pytest.mark.parametrize("format", WRITABLE)
@settings(max_examples=examples(25), deadline=None)
@given(file=conversations())
def test_what_no_warning_names_comes_back_as_it_was(format: str, file: SessionFile) -> None:
    written = write(file, format)

    again = read(written.data, format)

    named = " ".join(written.warnings)
    lifted = 0
    while lifted < len(file.messages) and file.messages[lifted][0].role == "system":
        lifted += 1
    if lifted == len(file.messages) or any(loss in named for loss in LOST_TEXT):
        return
    texts = [text(message) for message, _ in again.messages if message.role != "system"]
    expected = [text(message) for message, _ in file.messages if message.role != "system"]
    assert [one for one in texts if not one.startswith("# aider chat started")] == expected
    if "the usage report" not in named:
        assert sum(m.usage is not None for m, _ in again.messages) == sum(
            m.usage is not None for m, _ in file.messages
        )
    if "that the message is a summary" not in named:
        assert again.compactions == sum(is_summary(message) for message, _ in file.messages)


def text(message: Message) -> str:
    return "\0".join(
        block.text if isinstance(block, Text) else str(block.content) if isinstance(block, ToolResult) else ""
        for block in message.content
        if isinstance(block, Text | ToolResult)
    )


def is_summary(message: Message) -> bool:
    return message.meta is not None and message.meta.type == "compaction_summary"


RECORDED = [row for row in recorded.sessions("cline", "pi", "claude-code") if row["bytes"] < 2_500_000][:5]


@pytest.mark.parametrize("row", RECORDED, ids=[row["name"] for row in RECORDED])
def test_a_recorded_session_is_written_in_its_own_format_without_a_loss(row: dict[str, str]) -> None:
    folder = recorded.folder()
    assert folder is not None
    file = read(folder / row["file"])

    written = write(file, row["format"])

    assert [warning for warning in written.warnings if "provider" not in warning] == []
    assert read(written.data).messages[-1][0].content == file.messages[-1][0].content
