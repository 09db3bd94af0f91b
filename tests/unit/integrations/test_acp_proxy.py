"""`compactd acp -- AGENT` between the official SDK's client and an agent written with the same SDK."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from compactd.client import Client
from tests.support.acp_clients import PLAIN_AGENT, SDK_AGENT, before, talking
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment

SMALL = {"COMPACTD_STRATEGY": "extract", "COMPACTD_KEEP_RECENT_TOKENS": "2000"}


def noted(log: Path) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()]


async def test_the_gauge_rises_and_falls_over_a_compact_and_the_agent_goes_on_from_the_summary(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    options = ("--window", "50000", *before(SDK_AGENT, log))
    async with talking(tmp_path, *options, env=SMALL) as talk:
        editor = talk.editor
        await editor.until(lambda: len(editor.used) == 1)
        await talk.connection.set_session_mode(session_id=talk.id, mode_id="careful")
        for number in range(1, 6):
            assert await talk.say(f"Never touch bank.toml. Do step {number}") == "end_turn"
        await editor.until(lambda: len(editor.used) == 6)
        rising = list(editor.used)
        compacted = await talk.command("/compact keep TOTAL_3")
        await editor.until(lambda: len(editor.used) == 7)
        after = editor.used[-1]
        context = await talk.command("/context")
        sessions = await talk.command("/sessions")
        assert await talk.say("Do step 6") == "end_turn"
        assert await talk.say("Do step 7") == "end_turn"
        ids = {session_id for session_id, _ in editor.updates}
        names = [one.name for one in editor.of("available_commands_update")[0].available_commands]

    assert rising == sorted(rising)
    assert (rising[0], after < rising[-1] / 2) == (0, True)
    assert compacted.startswith("✓ Compacted")
    assert "Compactions: 1" in context
    assert "acp:s1" in sessions
    assert (ids, names) == ({"s1"}, ["compact", "context", "sessions"])
    did = noted(log)
    assert [(one["did"], one["session"]) for one in did if one["did"] != "prompt"] == [
        ("new", "s1"), ("mode", "s1"), ("new", "s2"), ("mode", "s2"),
    ]  # fmt: skip
    prompts = [(one["session"], one["text"]) for one in did if one["did"] == "prompt"]
    assert [session for session, _ in prompts] == ["s1"] * 5 + ["s2"] * 2
    assert "bank.toml" in prompts[5][1]
    assert "TOTAL_5 is right." in prompts[5][1]
    assert prompts[5][1].endswith("Do step 6")
    assert prompts[6][1] == "Do step 7"


async def test_an_agent_that_tells_its_usage_is_believed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with talking(tmp_path, *before(PLAIN_AGENT, log, "gauge"), env=SMALL) as talk:
        editor = talk.editor
        for number in (1, 2, 3, 4):
            await talk.say(f"Do step {number}")
        sizes = {update.size for update in editor.of("usage_update") if update.used}
        told = editor.used[-1]
        context = await talk.command("/context")
        await talk.command("/compact")
        await editor.until(lambda: editor.used[-1] < told)
        await talk.say("commands")
        await editor.until(lambda: len(editor.of("available_commands_update")) == 2)
        names = [one.name for one in editor.of("available_commands_update")[-1].available_commands]

    assert 50_000 in sizes
    assert f"{told:,} tokens of 50,000" in context
    assert names == ["fly", "compact", "context", "sessions"]


async def test_a_session_that_was_compacted_is_loaded_where_it_went_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with talking(tmp_path, *before(PLAIN_AGENT, log), env=SMALL) as talk:
        for number in (1, 2, 3, 4):
            await talk.say(f"Do step {number}")
        await talk.command("/compact")
    async with talking(tmp_path, *before(PLAIN_AGENT, log), env=SMALL, load="s1") as talk:
        await talk.say("Do step 5")
        ids = {session_id for session_id, _ in talk.editor.updates}
    with Client(env=environment(tmp_path)) as client:
        client.session_start(session_id="acp:s1")
        history = client.session_history(session_id="acp:s1").entries

    loaded, prompted = noted(log)[-2:]
    assert (loaded["did"], loaded["session"], ids) == ("load", "s2", {"s1"})
    assert "Step 4 is done, TOTAL_4 is right." in prompted["text"]
    texts = [bytes(entry.message).decode() for entry in history if entry.kind == "message"]
    assert sum("Do step" in text for text in texts) == 5
    assert not any("an old prompt" in text for text in texts)


def test_lines_pass_byte_for_byte_and_compactions_are_told_to_a_client_that_takes_them(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    echo = tmp_path / "agent.py"
    echo.write_text(AGENT)
    process = subprocess.Popen(
        [*COMPACTD, "acp", "--window", "50000", "--", sys.executable, str(echo)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(tmp_path, SMALL), cwd=tmp_path,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    odd = b'{ "jsonrpc":"2.0", "id":null, "method":"x/odd",  "params":[1, 2.50, "\\u00e9"] }\n'
    capabilities = {"session": {"compaction": {}}}
    lines = [
        {
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": 1, "clientCapabilities": capabilities},
        },
        {"id": 2, "method": "session/new", "params": {"cwd": str(tmp_path), "mcpServers": []}},
        *(prompt(number) for number in range(3, 8)),
        {"id": 8, "method": "session/prompt", "params": asked("/compact")},
    ]
    got: list[dict] = []
    process.stdin.write(odd)
    process.stdin.flush()
    first = process.stdout.readline()
    for line in lines:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
        process.stdin.flush()
        while not got or got[-1].get("id") != line["id"]:
            got.append(json.loads(process.stdout.readline()))
    process.stdin.close()

    assert process.wait(TIMEOUT_S) == 7
    assert first == odd
    updates = [one["params"]["update"] for one in got if one.get("method") == "session/update"]
    (compaction,) = [one for one in updates if one["sessionUpdate"] == "compaction_update"]
    assert compaction["status"] == "completed"
    assert compaction["summary"][0]["type"] == "text"
    assert log.exists() is False


def asked(text: str) -> dict:
    return {"sessionId": "one", "prompt": [{"type": "text", "text": text}]}


def prompt(number: int) -> dict:
    return {"id": number, "method": "session/prompt", "params": asked(f"Read part{number}.py. " * 400)}


AGENT = """
import json, sys
count = 0
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message["method"] == "x/odd":
        sys.stdout.buffer.write(line)
    else:
        count += message["method"] == "session/new"
        name = "one" if count == 1 else "two"
        results = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": name}}
        result = results.get(message["method"], {"stopReason": "end_turn"})
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\\n")
    sys.stdout.buffer.flush()
sys.exit(7)
"""


def test_an_agent_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    ended = subprocess.run(
        [*COMPACTD, "acp", "--", "no-such-agent"],
        stdin=subprocess.DEVNULL, capture_output=True, env=environment(tmp_path), timeout=TIMEOUT_S,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout) == (1, b"")
    assert b"no-such-agent cannot be started" in ended.stderr
