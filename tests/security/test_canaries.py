"""A canary planted in every feature is nowhere in the data folder after a redaction or a deletion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactd.storage.word_holders import HOLDERS, files_with_holder, holder_of
from tests.e2e.test_summaries_by_a_model import SUMMARY
from tests.security.canaries import ALL, BEYOND, LONG, SECRETS, SET, SHORT, held
from tests.support.acp_clients import PLAIN_AGENT, before, talking
from tests.support.agent_transcripts import Turn, past
from tests.support.client import Daemon
from tests.support.command_line import environment as of_home
from tests.support.command_line import run
from tests.support.git_marks import needs_git
from tests.support.hook_runs import Agent
from tests.support.loopback import Answer, Loopback, Stall
from tests.support.own_loop import MODELS, environment
from tests.support.talk import CHARS4, call, result, turns, user
from tests.support.work_trees import made_tree
from tests.unit.integrations.test_mcp import Server

pytestmark = needs_git

SMALL = {"COMPACTD_STRATEGY": "extract", "COMPACTD_KEEP_RECENT_TOKENS": "200"}
OWN, MIRROR, ACP = "everything", "claude-code:5c5cb639-aaaa", "acp:s1"


@pytest.fixture
async def planted(tmp_path: Path) -> Path:
    """A home in which every feature held the canaries; its data folder is `data`."""
    with Loopback() as server:
        env = {**of_home(tmp_path), **environment("anthropic", server.base_url)}
        with Daemon(tmp_path / "data", env=env) as daemon:
            everything(daemon, server, tmp_path)
            assert daemon.stop() == 0
    installed(tmp_path)
    mirrored(tmp_path)
    async with talking(tmp_path, *before(PLAIN_AGENT, tmp_path / "log"), env=SMALL) as talk:
        for number in range(4):
            await talk.say(f"Do step {number}. {ALL}")
        await talk.command(f"/compact keep {LONG}")
        await talk.say("Do the last step")
    return tmp_path


def everything(daemon: Daemon, server: Loopback, folder: Path) -> None:
    """One session of the daemon's own with all that it can hold."""
    tree = made_tree(folder)
    (tree / "src" / "secret.py").write_text(ALL)
    tool = {"name": "login", "description": f"Logs in by {SET}", "input_schema": {"type": "object"}}
    daemon.call(
        "session/start",
        session_id=OWN,
        model=MODELS["anthropic"],
        compaction={**CHARS4, "model": MODELS["anthropic"], "prune_minimum": 10, "prune_protect": 10},
        context_window=100_000,
        system_prompt=f"The door opens with {SET}.",
        tools=[tool],
        title=f"About {LONG} and {SHORT}",
        working_dir=str(tree),
        snapshots=True,
    )
    daemon.call("turn/begin", session_id=OWN)
    thinking = {"type": "thinking", "text": ALL, "signature": "c2lnbmVk"}
    calling = call("t1", "login", key=ALL, path=f"src/{LONG}.py", inner=json.dumps({"pin": ALL}))
    calling["content"].insert(0, thinking)
    answered = result("t1", 0)
    answered["content"][0]["content"] = f"{ALL}\n" + "line of output\n" * 400
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": ALL, "meta": {"pinned": True}},
        {"role": "system", "content": ALL},
        calling,
        answered,
        {"role": "assistant", "content": ALL},
        {"role": "user", "content": f"$ cat secret\n{ALL}", "meta": {"kind": "bash_execution"}},
        {"role": "user", "content": f"Never use {SHORT} again."},
        *turns(12, 300),
        user(20),
    ]
    files = {"read": [f"src/{LONG}.py"], "modified": [f"src/{BEYOND}.py"]}
    daemon.call("session/append", session_id=OWN, messages=messages, files=files)
    daemon.call("turn/end", session_id=OWN, messages=turns(1, 20))
    daemon.call("session/search", query="pin", limit=1)
    daemon.call("session/prune", session_id=OWN)
    extracted = daemon.call("session/compact", session_id=OWN, strategy="extract", keep_recent=2000)
    daemon.call("session/undo", session_id=OWN)
    server.play(Answer(text=f"{SUMMARY}- {ALL}\n", input_tokens=900, output_tokens=90))
    written = daemon.call(
        "session/compact", session_id=OWN, strategy="summarize", keep_recent=1500, instructions=f"Keep {ALL}"
    )
    assert extracted["compacted"]
    assert (written["reason"], written["strategy"], LONG in written["summary"]) == ("", "summarize", True)
    server.play(Stall("Thinking"))
    first = daemon.call("agent/prompt", session_id=OWN, text=f"Use {ALL}")
    daemon.event("message_delta", OWN)
    daemon.call("agent/prompt", session_id=OWN, text=f"Did you use {ALL}?")
    daemon.call("agent/abort", session_id=OWN)
    daemon.event("agent_end", OWN, turn_id=first["turn_id"])
    daemon.call("session/branch", session_id=OWN, entry_id="e9")
    for format_ in ("compactd", "neutral"):
        daemon.call("session/export", session_id=OWN, format=format_, path=str(folder / f"{format_}.out"))
    daemon.call("session/search", query="pin", limit=1)


def installed(folder: Path) -> None:
    """Install hooks into Claude Code's settings, which already contain an API key and an older hook command
    of compactd that the installation replaces."""
    settings = folder / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    ours = {"hooks": [{"type": "command", "command": "python3 -m compactd hook claude-code"}]}
    settings.write_text(json.dumps({"env": {"API_KEY": ALL}, "hooks": {"Stop": [ours]}}))
    assert run(folder, "install", "claude-code").code == 0
    assert "PreCompact" in settings.read_text()


def mirrored(folder: Path) -> None:
    """A session of Claude Code's: compacted twice, searched over MCP, one compaction not yet given back."""
    agent = Agent("claude-code", folder)
    agent.prompt()
    agent.session.say(Turn("user", ALL), *past(3))
    agent.stop()
    agent.session.compact(f"The user said: {ALL}")
    agent.prompt()
    agent.session.say(Turn("user", f"Again: {ALL}"), Turn("assistant", f"Yes: {ALL}"), *past(3))
    agent.stop()
    agent.session.compact("Work is under way.")
    agent.stop()
    with Server(folder, "--session", MIRROR) as server:
        assert LONG in server.told("search_history", query=LONG)


def daemon_of(folder: Path) -> Daemon:
    return Daemon(folder / "data", env=of_home(folder))


def holding(daemon: Daemon, session: str) -> list[str]:
    """The messages that hold any of the canaries."""
    entries = daemon.call("session/history", session_id=session)["entries"]
    told = {
        one["entry_id"]: json.dumps(one["message"], ensure_ascii=False) for one in entries if "message" in one
    }
    return [name for name, text in told.items() if any(word in text for word in (LONG, SHORT, BEYOND, SET))]


def unclaimed(data: Path) -> Iterator[str]:
    for path, holder in files_with_holder(data):
        if holder is None:
            yield str(path.relative_to(data))


def test_the_canaries_are_planted_in_every_kind_of_file_and_a_row_claims_each(planted: Path) -> None:
    data = planted / "data"

    found = held(data, *SECRETS, SET)

    kinds = {holder.name for name in found[LONG] if (holder := holder_of(name)) is not None}
    assert kinds == {"journal", "list", "index", "hook", "snapshots"}
    assert set(found) == {*SECRETS, SET}
    assert list(unclaimed(data)) == []
    there = {holder.name for _, holder in files_with_holder(data) if holder is not None}
    assert there >= {"journal", "exports", "lock", "index", "hook", "hook's numbers", "ACP link", "snapshots"}
    assert "installed hooks" in there
    assert len({holder.name for holder in HOLDERS}) == len(HOLDERS)
    (data / "sessions" / "of-a-new-feature.txt").write_text("x")
    assert list(unclaimed(data)) == ["sessions/of-a-new-feature.txt"]


def test_after_a_redaction_no_byte_of_the_data_folder_holds_them_and_the_answer_says_what_does(
    planted: Path,
) -> None:
    data = planted / "data"
    left: dict[str, list[dict[str, Any]]] = {}
    with daemon_of(planted) as daemon:
        for session in (OWN, MIRROR, ACP):
            daemon.call("session/start", session_id=session)
            answer = daemon.call("session/redact", session_id=session, entry_ids=holding(daemon, session))
            left[session] = answer.get("left", [])
        assert daemon.stop() == 0

    assert held(data, *SECRETS) == {}
    assert {Path(name).suffix for name in held(data, SET)[SET]} == {".jsonl"}
    assert [row["where"] for row in left[OWN]] == ["settings", "export", "export"]
    assert [row["where"] for row in left[MIRROR]] == ["transcript"]
    assert left[ACP] == []
    assert not any(word in json.dumps(left, ensure_ascii=False) for word in (LONG, SHORT, BEYOND))
    assert list(unclaimed(data)) == []


def test_after_a_deletion_no_byte_of_the_data_folder_holds_them(planted: Path) -> None:
    data = planted / "data"
    with daemon_of(planted) as daemon:
        answers = {
            session: daemon.call("session/delete", session_id=session) for session in (OWN, MIRROR, ACP)
        }
        assert daemon.call("session/list")["sessions"] == []
        assert daemon.stop() == 0

    assert held(data, *SECRETS, SET) == {}
    assert [row["where"] for row in answers[OWN]["left"]] == ["export", "export"]
    assert [row["where"] for row in answers[MIRROR]["left"]] == ["transcript"]
    assert answers[ACP] == {}
    assert [path.name for path in (data / "acp").iterdir()] == []
    assert list(unclaimed(data)) == []
