"""A compacted session in every format: what is read back is the compacted context, and it compacts again."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from compactd.cli.agent_files.resume import how_to_resume, new_session_id, place_of
from compactd.cli.framework.compacted_file import FORMATS, compacted_file
from compactd.cli.framework.conversation import LoadedConversation
from compactd.cli.framework.load_file import append_conversation, load_session
from compactd.client import Client
from compactd.core.history.entries import is_summary
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.files.detect import read
from compactd.formats.messages.neutral import decode_message
from compactd.protocol.messages import CompactionResult, Message, ToolCall, ToolResult
from tests.support import session_files

ID = "5c5cb639-0000-4000-8000-00000000000f"
TARGET = 3_000
AS_TEXT = {"aider"}
"""The formats that have no place for tool calls. They become text."""
NO_SUMMARY = {*AS_TEXT, "swe-agent", "mini-swe-agent", "openai", "openai_responses", "anthropic", "gemini"}
"""The formats in which the summary is a message like others."""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with Client(env={"COMPACTD_HOME": str(home), "PATH": "/usr/bin:/bin"}) as client:
        yield client


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> LoadedConversation:
    records = []
    for number in range(1, 15):
        call = session_files.used(f"t{number}", "Read", file_path=f"/pages/{number}.md")
        records += [
            session_files.asked(f"Now check page {number}. {session_files.filler(60)}"),
            session_files.answered(2 * number, call, usage=session_files.reported(50_000)),
            session_files.got(f"t{number}", f"Page {number}: {session_files.filler(60)}"),
            session_files.answered(2 * number + 1, session_files.text(f"Page {number} is right.")),
        ]
    path = session_files.claude_code(tmp_path_factory.mktemp("source") / "in.jsonl", records)
    return load_session(path, path.read_bytes(), read(path.read_bytes()))


@pytest.fixture(scope="module")
def session_id(client, source) -> str:
    return compact(client, source)[0]


def compact(client: Client, conversation: LoadedConversation) -> tuple[str, CompactionResult]:
    fed = append_conversation(client, conversation, model=None, window=None, live_only=True)
    params = {"session_id": fed.session_id, "target_tokens": TARGET}
    return fed.session_id, client.ask("session/compact", params, CompactionResult)


class Outline(NamedTuple):
    """What a message says."""

    text: str
    calls: int
    """The number of its tool calls and results."""


def outline(messages: list[Message]) -> list[Outline]:
    return [
        Outline(
            join_text_blocks(message.content).strip(),
            sum(isinstance(block, ToolCall | ToolResult) for block in message.content),
        )
        for message in messages
    ]


def roles(messages: list[Message], format: str) -> list[str]:
    """Return the role of each message. In Anthropic's format, the user gives the results of tools."""
    return ["user" if format == "anthropic" and one.role == "tool" else one.role for one in messages]


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_read_back_is_the_compacted_context(client, source, session_id, format, tmp_path) -> None:
    view = client.session_context(session_id=session_id)
    expected = [decode_message(raw) for raw in view.messages]

    made = compacted_file(client, session_id, source, format, ID)
    back = load_session(tmp_path / "out", made.data, read(made.data))
    live = [message for message, _ in back.live]
    again = compact(client, back)[1]

    assert back.format == format
    assert b"cache_control" not in made.data
    if format == "gemini":
        assert join_text_blocks(live.pop().content) == "(conversation continues)"
    else:
        assert made.messages == len(expected)
    assert is_summary(live[0]) is (format not in NO_SUMMARY)
    assert all(message.usage is None for message in live)
    if format in AS_TEXT:
        texts = "\n".join(one.text for one in outline(live))
        assert all(one.text in texts for one in outline(expected) if "\n" not in one.text)
    else:
        assert roles(live, format) == roles(expected, format)
        assert outline(live) == outline(expected)
    assert again.compacted or "nothing to compact" in again.reason


@pytest.mark.parametrize("format", ["claude-code", "codex", "gemini-cli", "pi", "opencode"])
def test_the_formats_of_agents_that_resume_lose_nothing_that_they_have_a_place_for(
    client, source, session_id, format
) -> None:
    made = compacted_file(client, session_id, source, format, ID)

    known = {"not kept: the title", "not kept: the model's provider"}
    if format == "gemini-cli":  # Its results have no ids.
        known.add("not kept: the message's id (5, 9)")
    assert set(made.warnings) <= known


def test_opencode_gets_new_ids_because_its_import_skips_known_ones(
    client, source, session_id, tmp_path
) -> None:
    made = compacted_file(client, session_id, source, "opencode", "ses_1")
    first = load_session(tmp_path / "out.json", made.data, read(made.data))
    fed = append_conversation(client, first, model=None, window=None)

    second = read(compacted_file(client, fed.session_id, first, "opencode", "ses_2").data)

    known, new = ({message.id for message, _ in lines} for lines in (first.messages, second.messages))
    assert len(new) == len(known) == made.messages
    assert all(str(id).startswith(("msg_", "prt_")) for id in known | new)
    assert not known & new


def test_each_agent_gets_its_own_place_and_command(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path)}
    out = tmp_path / "out.jsonl"

    def told(format: str) -> tuple[str | None, tuple[str, ...]]:
        place = place_of(format, ID, "/code/app", tmp_path / "source.jsonl", env)
        resumption = how_to_resume(format, place or out, ID, "/code/app", place)
        assert resumption is not None
        return place and str(place.relative_to(tmp_path)), resumption.commands

    assert told("claude-code") == (
        f".claude/projects/-code-app/{ID}.jsonl",
        (f"cd /code/app && claude --resume {ID}",),
    )
    codex, resume = told("codex")
    assert re.fullmatch(rf"\.codex/sessions/\d{{4}}/\d\d/\d\d/rollout-[\dT-]{{19}}-{ID}\.jsonl", str(codex))
    assert resume == (f"cd /code/app && codex resume {ID}",)
    gemini, resume = told("gemini-cli")
    assert re.fullmatch(r"\.gemini/tmp/[0-9a-f]{64}/chats/session-[\dT-]{16}-5c5cb639\.jsonl", str(gemini))
    assert resume == (f"cd /code/app && gemini --resume {ID}",)
    pi, resume = told("pi")
    assert re.fullmatch(rf"\.pi/agent/sessions/--code-app--/[\dT-]{{19}}_{ID}\.jsonl", str(pi))
    assert resume == (f"cd /code/app && pi --session {tmp_path / str(pi)}",)
    assert told("opencode") == (
        None,
        (f"cd /code/app && opencode import {out}", f"opencode --session {ID}"),
    )
    assert told("aider")[1][0].endswith(f"aider --restore-chat-history --chat-history-file {out}")


@pytest.mark.parametrize("format", ["claude-code", "codex", "gemini-cli", "pi", "opencode", "aider"])
def test_the_commands_find_the_file_from_any_folder(tmp_path: Path, format: str) -> None:
    place = place_of(format, ID, "/code/app", tmp_path / "source.jsonl", {"HOME": str(tmp_path)})

    resumption = how_to_resume(format, Path("small.jsonl"), ID, "/code/app", place)

    assert resumption is not None
    assert f" {Path.cwd() / 'small.jsonl'}" in " && ".join(resumption.commands)


def test_gemini_cli_and_claude_code_files_go_where_the_project_already_has_files(tmp_path: Path) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "app" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/code/app")
    (chats / "session-2026-11-27T10-00-aaaaaaaa.jsonl").write_text("{}")

    place = place_of("gemini-cli", ID, "/code/app", tmp_path / "x.jsonl", {"HOME": str(tmp_path)})

    assert place is not None
    assert place.parent == chats


def test_the_id_in_the_name_of_the_file_is_the_sessions_id() -> None:
    assert new_session_id("claude-code", Path(f"/x/{ID}.jsonl")) == ID
    assert new_session_id("codex", Path(f"/x/rollout-2026-11-27T10-00-00-{ID}.jsonl")) == ID
    assert new_session_id("claude-code", Path("/x/small.jsonl")) != new_session_id("claude-code", None)
    assert new_session_id("opencode", None).startswith("ses_")
