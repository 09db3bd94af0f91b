"""`compactd acp` as an agent itself, without another agent, with the ACP SDK's client and a fake model."""

from __future__ import annotations

from pathlib import Path

import acp
import pytest

from tests.support.acp_clients import talking
from tests.support.command_line import run
from tests.support.loopback import Answer, Call, Fail, Loopback
from tests.support.own_loop import environment

MODEL = ("--model", "openai/gpt-4o", "--window", "30000")
EXTRACT = {"COMPACTD_STRATEGY": "extract", "COMPACTD_KEEP_RECENT_TOKENS": "2000"}
LONG = "The ledger was balanced and every column added up again before noon. " * 120


def pointed(server: Loopback) -> dict[str, str]:
    return {**environment("openai", server.base_url), **EXTRACT}


async def test_the_gauge_rises_over_prompts_and_falls_over_a_compact(tmp_path: Path) -> None:
    answers = [
        Answer(text=f"TOTAL_{number} is right. {LONG}", count_input=True, chunk_chars=2000)
        for number in range(6)
    ]
    with Loopback(answers) as server:
        async with talking(tmp_path, *MODEL, env=pointed(server)) as talk:
            editor = talk.editor
            await editor.until(lambda: len(editor.used) > 0)
            empty = editor.used[-1]
            for number in range(5):
                assert await talk.say(f"Never touch bank.toml. Step {number}. {LONG}") == "end_turn"
            full = editor.used[-1]
            compacted = await talk.command("/compact")
            await editor.until(lambda: editor.used[-1] < full)
            small = editor.used[-1]
            context = await talk.command("/context")
            assert await talk.say("And now?") == "end_turn"
            text = editor.text
        before, last = server.requests[-2:]

    assert empty < small < full / 2
    assert compacted.startswith("✓ Compacted")
    assert "Compactions: 1" in context
    assert "TOTAL_5 is right." in text
    assert last.tokens < before.tokens / 2
    assert ("bank.toml" in str(last.body), "And now?" in str(last.body)) == (True, True)


async def test_tools_run_in_the_editor_which_is_asked_before_anything_is_changed(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.py")
    calls = (
        Answer(calls=(Call("read_file", f'{{"path": "{path}"}}', "c1"),)),
        Answer(calls=(Call("write_file", f'{{"path": "{path}", "content": "TOTAL = 2\\n"}}', "c2"),)),
        Answer(calls=(Call("run_command", '{"command": "pytest -q"}', "c3"),)),
        Answer(calls=(Call("fly", "{}", "c4"),)),
        Answer(text="Done."),
    )
    with Loopback(calls) as server:
        async with talking(tmp_path, *MODEL, env=pointed(server)) as talk:
            editor = talk.editor
            editor.files[path] = "TOTAL = 1\n"
            assert await talk.say("Make TOTAL two.") == "end_turn"
            await editor.until(lambda: editor.text.endswith("Done."))
        bodies = [str(seen.body) for seen in server.requests]

    assert editor.files[path] == "TOTAL = 2\n"
    assert "TOTAL = 1" in bodies[1]
    assert "exit code 0" in bodies[3]
    assert [asked.split(" ")[0] for asked in editor.asked[:4]] == ["write", "run", "sh", "released"]
    shown = {one.tool_call_id: one.kind for one in editor.of("tool_call")}
    assert {**shown, "c4": ""} == {"c1": "read", "c2": "edit", "c3": "execute", "c4": ""}
    done = [(one.tool_call_id, one.status) for one in editor.of("tool_call_update")]
    assert [pair for pair in done if pair[1] == "completed"] == [(f"c{n}", "completed") for n in (1, 2, 3)]


async def test_errors_are_told_the_session_goes_on_and_is_loaded_with_what_was_said(tmp_path: Path) -> None:
    steps = (Fail(status=400), Answer(text="Hello to you."), Answer(text="As I said."))
    with Loopback(steps) as server:
        async with talking(tmp_path, *MODEL, env=pointed(server)) as talk:
            with pytest.raises(acp.RequestError):
                await talk.say("Hello?")
            with pytest.raises(acp.RequestError):
                await talk.connection.load_session(cwd="/", session_id="nobody", mcp_servers=[])
            with pytest.raises(acp.RequestError):
                await talk.connection.prompt(session_id="nobody", prompt=[acp.text_block("x")])
            assert await talk.say("Good morning.") == "end_turn"
        async with talking(tmp_path, *MODEL, env=pointed(server), load=talk.id) as again:
            replayed = [update.content.text for update in again.editor.of("user_message_chunk")]
            before = again.editor.text
            await again.say("What did you say?")
        last = str(server.requests[-1].body)

    assert (replayed, before) == (["Hello?", "Good morning."], "Hello to you.")
    assert "Hello to you." in last


def test_it_ends_with_its_input_whatever_that_is(tmp_path: Path) -> None:
    # `run` gives it an empty device.
    assert run(tmp_path, "acp", "--model", "openai/gpt-4o").code == 0


def test_without_a_model_and_without_an_agent_it_says_what_to_name(tmp_path: Path) -> None:
    ended = run(tmp_path, "acp")

    assert (ended.code, "name a model" in ended.err) == (2, True)
