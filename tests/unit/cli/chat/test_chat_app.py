"""The chat app with a real daemon that echoes: what the user types and sees."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from compactd.cli.chat.chat_session import ChatSession
from compactd.cli.chat.conversation import PromptText
from compactd.cli.chat.folds import CallFold, Rule
from compactd.cli.chat.gauge import gauge_text
from compactd.cli.chat.overlays import ContextScreen, HelpScreen
from compactd.cli.chat.picker import Picker
from compactd.cli.chat.styles import LIGHT
from compactd.client import AsyncClient
from compactd.protocol.messages import TokenUsage
from tests.unit.cli.chat.staged import MODEL, client_of, normalised, staged

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCREENS = Path(__file__).with_name("screens")
SESSION = Path(__file__).parents[4] / "examples" / "session.jsonl"
MESSAGES = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]


async def filled(client: AsyncClient, session: str, messages: list[Any] = MESSAGES) -> None:
    """A session with a real conversation in it."""
    await client.call("session/start", {"session_id": session, "model": MODEL})
    await client.call("session/append", {"session_id": session, "messages": messages})


async def usage(client: AsyncClient, session: str) -> TokenUsage:
    return (await client.agent_state(session_id=session)).token_usage


async def test_a_prompt_is_answered_and_the_gauge_is_the_daemons(client: AsyncClient) -> None:
    async with staged(client, session="talk") as stage:
        await stage.says("What is **this**?")
        await stage.says("And that?")

        assert [str(asked.content) for asked in stage.app.query(PromptText)] == [
            "What is **this**?",
            "And that?",
        ]
        assert " What is this?" in stage.lines()
        told = gauge_text(await usage(client, "talk"))
        assert stage.lines()[-1].startswith(f" echo ({MODEL}) · {told}")
        assert f"context {told}" in stage.lines()[0]


async def test_a_compaction_is_a_rule_that_opens_and_is_taken_back(client: AsyncClient) -> None:
    await filled(client, "compact", MESSAGES[:30])
    async with staged(client, session="compact", size=(130, 40)) as stage:
        full = await usage(client, "compact")

        await stage.says("/compact the snippets --keep 6")

        less = await usage(client, "compact")
        assert (less.current_context_tokens or 0) < (full.current_context_tokens or 0)
        await stage.sees(f"context {gauge_text(less)}")
        await stage.sees("u undo · enter open ──")
        assert "summarised" in stage.seen()
        await stage.presses("tab", "enter")
        await stage.sees("Progress")
        await stage.presses("u")
        await stage.sees("undone: 30 messages in the context")
        assert await usage(client, "compact") == stage.app.talk.usage
        assert stage.app.talk.usage.current_context_tokens == full.current_context_tokens
        [rule] = stage.app.query(Rule)
        assert not rule.is_in_force
        await stage.says("/redo")
        assert rule.is_in_force
        await stage.says("/undo")
        await stage.says("/undo")
        await stage.sees("(1011)")


async def test_what_was_summarised_opens_to_the_originals(client: AsyncClient) -> None:
    await filled(client, "originals", MESSAGES[:12])
    async with staged(client, session="originals") as stage:
        await stage.says("/compact --keep 2")
        fold = stage.app.panel.query("FoldWidget").last()

        fold.focus()
        await stage.presses("enter")

        await stage.sees("assistant · e2")
        await stage.sees("I'll look at where search lives")


async def test_nothing_to_compact_is_said_so(client: AsyncClient) -> None:
    async with staged(client, session="small") as stage:
        await stage.says("Hi.")
        await stage.says("/compact")

        await stage.sees("No compaction needed: ")
        assert not stage.app.query(Rule)


async def test_a_compaction_comes_by_itself_when_it_is_due(client: AsyncClient) -> None:
    limits = {"context_window": 4_000, "threshold_ratio": 0.5, "keep_messages": 2}
    async with staged(client, session="due", compaction=limits) as stage:
        await stage.says("one " * 700)
        await stage.says("two " * 700)
        await stage.says("three")

        assert len(stage.app.query(Rule)) >= 1
        assert gauge_text(await usage(client, "due")) in stage.lines()[-1]


async def test_calls_are_folded_and_open_to_their_results(client: AsyncClient) -> None:
    await filled(client, "calls", MESSAGES[:9])
    async with staged(client, session="calls") as stage:
        folds = list(stage.app.query(CallFold))
        assert [fold.call.name for fold in folds if fold.call] == ["bash", "bash", "read", "bash"]
        assert "catalogue.py" not in stage.seen()

        folds[0].focus()
        await stage.presses("enter")

        await stage.sees("catalogue.py")
        await stage.presses("enter")
        await stage.until(lambda: "catalogue.py" not in stage.seen(), "closed")


async def test_a_branch_leaves_what_came_after_it(client: AsyncClient) -> None:
    async with staged(client, session="branch") as stage:
        for text in ("first", "second", "third"):
            await stage.says(text)
        await stage.sends("/branch")
        await stage.until(lambda: isinstance(stage.app.screen, Picker), "the list")
        assert "after: first" in stage.seen()

        await stage.presses(*"first", "enter")

        await stage.sees("4 entries of another branch")
        assert [str(asked.content) for asked in stage.app.query(PromptText)] == ["first"]
        await stage.says("instead")
        context = await client.session_context(session_id="branch")
        assert [json.loads(bytes(raw))["content"] for raw in context.messages] == [
            "first",
            "first",
            "instead",
            "instead",
        ]


async def test_another_session_is_picked_and_shown(client: AsyncClient) -> None:
    await client.call("session/start", {"session_id": "elsewhere", "title": "Elsewhere"})
    said = [{"role": "user", "content": "Long ago."}]
    await client.call("session/append", {"session_id": "elsewhere", "messages": said})
    async with staged(client, session="here") as stage:
        await stage.says("Now.")
        await stage.sends("/sessions")
        await stage.until(lambda: isinstance(stage.app.screen, Picker), "the list")

        await stage.presses(*"elsewhere", "enter")

        await stage.sees("Long ago.")
        assert stage.app.talk.id == "elsewhere"
        assert "Now." not in stage.seen()


async def test_words_are_found_compacted_or_not(client: AsyncClient) -> None:
    await filled(client, "search", MESSAGES[:20])
    async with staged(client, session="search") as stage:
        await stage.says("/compact --keep 2")
        await stage.says("/search one small file")

        await stage.sees("1 message with “one small file”")
        await stage.sees("· compacted · The search itself is")


async def test_the_model_is_changed_and_the_window_with_it(client: AsyncClient) -> None:
    async with staged(client, session="model") as stage:
        await stage.says("/model openai/gpt-4o")

        await stage.sees("the model is openai/gpt-4o, window 128k")
        assert "echo (openai/gpt-4o) · ○ 0 % · 0/128k" in stage.lines()[-1]


async def test_a_slash_shows_what_it_may_become_and_tab_completes_it(client: AsyncClient) -> None:
    async with staged(client, session="keys") as stage:
        await stage.presses(*"/un")
        await stage.sees("undo the last compaction")
        await stage.presses("tab")

        assert stage.app.prompting.text == "/undo "
        await stage.presses("enter")
        await stage.sees("(1011)")
        await stage.presses("up")
        assert stage.app.prompting.text == "/undo"


async def test_several_lines_are_one_prompt(client: AsyncClient) -> None:
    async with staged(client, session="lines") as stage:
        await stage.presses(*"one", "ctrl+j", *"two", "enter")

        assert [str(asked.content) for asked in stage.app.query(PromptText)] == ["one\ntwo"]


async def test_what_is_wrong_is_told_in_a_line_and_the_chat_goes_on(client: AsyncClient) -> None:
    async with staged(client, session="wrong") as stage:
        await stage.says("/undoo")
        await stage.says("/compact --keep none")
        await stage.says("/search")
        await stage.says("Still there?")

        await stage.sees("did you mean /undo?")
        await stage.sees("'none' is not a number of messages")
        await stage.sees("/search needs words to search for")
        await stage.sees(" Still there?")


async def test_hostile_text_is_shown_harmless(client: AsyncClient) -> None:
    text = "\x1b[31mred\x1b[0m [red]markup[/red] \u202eesrever\u202c <script>x</script> \x07\x9b2J &lt;"
    result = {"type": "tool_result", "call_id": "t", "name": f"\x1b]0;{'x' * 3}", "content": text}
    messages: list[Any] = [
        {"role": "user", "content": text},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": text}, {"type": "thinking", "text": text}],
        },
        {
            "role": "assistant",
            "content": [{"type": "tool_call", "call_id": "t", "name": "[b]", "arguments": {"command": text}}],
        },
        {"role": "tool", "content": [result]},
    ]
    await filled(client, "hostile", messages)
    async with staged(client, session="hostile", title=text) as stage:
        for fold in stage.app.conversation.query("FoldWidget"):
            fold.focus()
            await stage.presses("enter")
        await stage.says(text)
        await stage.says(f"/search {text}")

        seen = stage.seen()
        assert "[red]markup[/red]" in seen
        assert "<script>x</script>" in seen
        assert [c for c in "\x1b\x07\x9b\u202e\u202c" if c in seen] == []


@pytest.mark.parametrize("size", [(20, 6), (1, 1)])
async def test_a_terminal_too_small_harms_nothing(client: AsyncClient, size: tuple[int, int]) -> None:
    session = f"size{size[0]}"
    async with staged(client, session=session, size=size) as stage:
        await stage.says("Hello, is there room?")
        await stage.presses("ctrl+t")
        await stage.presses("ctrl+t")
        await stage.pilot.resize_terminal(130, 40)
        await stage.rests()

        await stage.sees(" Hello, is there room?")
        await stage.sees("largest")


async def test_the_context_is_beside_the_conversation_where_there_is_room(client: AsyncClient) -> None:
    async with staged(client, session="room", size=(80, 24)) as stage:
        assert not stage.app.panel.display
        await stage.says("/context")
        assert isinstance(stage.app.screen, ContextScreen)
        await stage.sees("system and tools" if "system and tools" in stage.seen() else "the context is empty")
        await stage.presses("escape")
        await stage.pilot.resize_terminal(110, 24)
        await stage.rests()
        assert stage.app.panel.display
        await stage.says("/context")
        assert not stage.app.panel.display


async def test_ctrl_c_quits_at_the_second_time_and_ctrl_d_at_the_first(client: AsyncClient) -> None:
    async with staged(client, session="quit") as stage:
        await stage.presses("ctrl+c")
        assert stage.app.is_running
        await stage.sees("Ctrl-C again quits")
        await stage.presses(*"no")
        assert "Ctrl-C again quits" not in stage.seen()
        await stage.presses("ctrl+d")
        assert stage.app.is_running
        await stage.presses("ctrl+c")
        assert (stage.app.prompting.text, stage.app.is_running) == ("", True)
        await stage.presses("up")
        assert stage.app.prompting.text == "no"
        await stage.pilot.press("ctrl+c", "ctrl+c")
        assert (stage.app.is_running, stage.app.return_code) == (False, 130)
    async with staged(client, session="quit") as stage:
        await stage.pilot.press("ctrl+d")
        assert (stage.app.is_running, stage.app.return_code) == (False, 0)


async def test_a_session_that_is_open_elsewhere_is_followed_and_not_written(
    client: AsyncClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("shared")
    async with client_of(home) as owner, client_of(home) as reader:
        await owner.call("session/start", {"session_id": "both", "model": MODEL})
        async with staged(reader, session="both", model=None) as stage:
            await stage.sees("read only: another process has this session open")
            said = [{"role": "user", "content": "From elsewhere."}]
            await owner.call("session/append", {"session_id": "both", "messages": said})
            await stage.sees("From elsewhere.")
            await stage.says("Mine.")
            await stage.sees("(1004)")
            assert stage.app.prompting.text == "Mine."
            assert "read only" in stage.lines()[-1]


async def test_a_daemon_that_dies_is_started_again_and_that_is_told_once(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client, staged(client, session="dies") as stage:
        await stage.says("Before.")
        os.kill(client.pid, signal.SIGKILL)
        await stage.says("After.")

        await stage.sees("the daemon stopped and was restarted.")
        await stage.until(
            lambda: [str(asked.content) for asked in stage.app.query(PromptText)] == ["Before.", "After."],
            "both",
        )
        assert stage.seen().count("the daemon stopped") == 1


async def test_the_first_screen_says_what_the_chat_is_and_what_to_try(client: AsyncClient) -> None:
    async with staged(client, session="first", size=(80, 24)) as stage:
        for text in ("compactd chat", "Echo mode", "chat --model", "/context", "/compact --keep 1", "?  "):
            assert text in stage.seen()
        await stage.pilot.resize_terminal(40, 10)
        await stage.rests()
        await stage.sees("? shows all commands and keys")
        assert "Echo mode" in stage.seen()

        await stage.says("Hello.")
        await stage.presses("ctrl+c")

        await stage.sees(" Hello.")
    async with staged(client, session="first", size=(80, 24)) as stage:
        assert "Echo mode" not in stage.seen(), "a session with messages shows them"


async def test_without_a_model_the_first_screen_says_how_to_name_one(client: AsyncClient) -> None:
    async with staged(client, session="no-model", size=(80, 24), is_echo=False, model=None) as stage:
        assert "No model is set." in stage.seen()
        assert "/model PROVIDER/ID names one" in stage.seen()
        await stage.says("/model openai/gpt-4o")
        assert "No model is set." not in stage.seen()
        assert "Your prompts go to openai/gpt-4o." in stage.seen()


async def test_a_question_mark_in_an_empty_prompt_lists_commands_and_keys(client: AsyncClient) -> None:
    async with staged(client, session="help") as stage:
        await stage.presses("?")
        assert isinstance(stage.app.screen, HelpScreen)
        for text in ("/compact [focus]", "Ctrl-O", "Esc closes"):
            assert text in stage.seen()
        await stage.presses("?")
        assert not isinstance(stage.app.screen, HelpScreen)
        assert stage.app.prompting.text == ""
        await stage.presses("w", "h", "y", "?")
        assert stage.app.prompting.text == "why?"
        stage.app.prompting.fill("")
        await stage.says("/help")
        assert isinstance(stage.app.screen, HelpScreen)


@pytest.mark.parametrize("opened_by", ["/context", "/help"])
async def test_text_typed_over_the_conversation_goes_to_the_prompt(
    client: AsyncClient, opened_by: str
) -> None:
    async with staged(client, session=f"typed{opened_by[1]}", size=(80, 24)) as stage:
        await stage.says(opened_by)
        assert "Esc closes" in stage.lines()[-1]

        await stage.presses(*"quick one")

        assert stage.app.prompting.text == "quick one"
        assert "Esc closes" not in stage.seen()


async def test_the_context_follows_the_width_of_the_window(client: AsyncClient) -> None:
    async with staged(client, session="width", size=(100, 30)) as stage:
        await stage.says("word " * 40)
        await stage.says("/context")
        wide = stage.lines()
        await stage.pilot.resize_terminal(40, 30)
        await stage.until(lambda: max(map(len, stage.lines())) <= 40, "40 columns")
        await stage.pilot.resize_terminal(100, 30)

        await stage.until(lambda: stage.lines() == wide, "\n".join(wide))
        await stage.pilot.resize_terminal(130, 30)
        await stage.until(
            lambda: not isinstance(stage.app.screen, ContextScreen), "the panel next to the conversation"
        )
        assert stage.app.panel.display


async def test_a_short_talk_is_told_how_it_is_compacted_anyway(client: AsyncClient) -> None:
    async with staged(client, session="short") as stage:
        await stage.says("one " * 300)
        await stage.says("/compact")
        await stage.sees("There is nothing before the newest prompt to summarise.")
        await stage.says("two " * 300)
        await stage.says("/compact")
        await stage.sees("To compact anyway: /compact --keep 1")

        await stage.says("/compact --keep 1")

        assert len(stage.app.query(Rule)) == 1


async def test_sessions_are_listed_newest_first_with_their_age_and_without_empty_ones(
    client: AsyncClient,
) -> None:
    for name in ("older", "newer", "unused"):
        await client.call("session/start", {"session_id": name, "model": "openai/gpt-4o"})
    for name in ("older", "newer"):
        said = [{"role": "user", "content": f"The {name} one."}]
        await client.call("session/append", {"session_id": name, "messages": said})
    async with staged(client, session="list") as stage:
        await stage.sends("/sessions")
        await stage.until(lambda: isinstance(stage.app.screen, Picker), "the list")
        await stage.sees("just now · The newer one.")
        assert stage.seen().index("The newer one.") < stage.seen().index("The older one.")
        assert "unused" not in stage.seen()
        await stage.presses("escape")

        await stage.sends("/sessions --all")
        await stage.until(lambda: isinstance(stage.app.screen, Picker), "the list")

        await stage.sees("just now · unused · 0 messages")
        await stage.presses("escape")
        await stage.says("/sessions older")
        assert stage.app.talk.id == "older"


async def test_a_session_that_was_never_used_is_not_left_behind(client: AsyncClient) -> None:
    async def names() -> set[str]:
        return {one.session_id for one in (await client.session_list()).sessions}

    await client.call("session/start", {"session_id": "goal"})
    before = await names()
    for start in ({}, {"system_prompt": "Be brief."}):
        talk = ChatSession(client, is_echo=True)
        await talk.open(start)
        await talk.delete_if_unused()
        assert (await names() == before) is (not start)
    talk = ChatSession(client, is_echo=True)
    await talk.open({})
    first = talk.id
    await talk.switch("goal")
    assert first not in await names()
    await talk.delete_if_unused()
    assert "goal" in await names(), "a stored session is never deleted"


async def test_a_session_whose_messages_were_not_read_yet_is_not_deleted(client: AsyncClient) -> None:
    await client.call("session/start", {"session_id": "other"})
    talk = ChatSession(client, is_echo=True)
    for leave in (lambda: talk.switch("other"), talk.delete_if_unused):
        await talk.open({})
        first = talk.id
        await client.call("session/append", {"session_id": first, "messages": MESSAGES[:1]})
        await leave()

        assert first in {one.session_id for one in (await client.session_list()).sessions}


async def test_keys_go_from_message_to_message_and_back_to_the_prompt(client: AsyncClient) -> None:
    await filled(client, "jump", MESSAGES[:30])
    async with staged(client, session="jump", size=(100, 20)) as stage:
        await stage.says("/compact --keep 4")
        await stage.says("The last one.")
        seen = []
        for _ in range(4):
            await stage.presses("ctrl+p")
            focused = stage.app.screen.focused
            assert focused is not None
            assert stage.app.screen.find_widget(focused).visible_region.height > 0
            seen.append(type(focused).__name__)
        assert seen[:3] == ["AnswerText", "PromptText", "Rule"]
        for _ in range(4):
            await stage.presses("ctrl+down")
        assert stage.app.prompting.has_focus
        await stage.presses("ctrl+n", "ctrl+up")
        await stage.presses("x")
        assert stage.app.prompting.text == "x", "typing goes to the prompt"
        for _ in range(100):
            await stage.pilot.press("ctrl+p")
        await stage.rests()
        assert stage.app.screen.focused is stage.app.query(PromptText).first()


async def test_all_entries_are_opened_and_closed_with_one_key(client: AsyncClient) -> None:
    await filled(client, "folds", MESSAGES[:9])
    async with staged(client, session="folds") as stage:
        await stage.presses("ctrl+o")
        assert all(fold.is_open for fold in stage.app.query(CallFold))
        await stage.presses("ctrl+o")
        assert not any(fold.is_open for fold in stage.app.query(CallFold))


@pytest.mark.parametrize("screen", ["", "/context", "/help", "/sessions"])
async def test_a_window_made_tiny_and_large_again_shows_the_same(client: AsyncClient, screen: str) -> None:
    name = f"tiny{screen.strip('/')}"
    await filled(client, name, MESSAGES[:30])
    async with staged(client, session=name, size=(100, 30)) as stage:
        await stage.says("/compact --keep 4")
        if screen:
            await stage.sends(screen)
            await stage.until(lambda: len(stage.app.screen_stack) > 1, screen)
        before = stage.lines()
        for size in ((30, 8), (200, 60), (5, 3), (30, 8), (100, 30)):
            await stage.pilot.resize_terminal(*size)
            await stage.pilot.pause()
        if screen != "/context":
            await stage.until(lambda: stage.lines() == before, "\n".join(before))
        if screen == "/sessions":
            await stage.presses("escape")


async def test_what_is_settled_while_its_first_word_is_shown_fails_nothing(client: AsyncClient) -> None:
    """A daemon may be restarted while an answer begins."""
    async with staged(client, session="settled") as stage:
        talk = stage.app.conversation
        for more in (talk.add_text, talk.add_thinking, talk.add_summary_text):
            await asyncio.gather(more("Half "), talk.drop_live())
            await more("of it.")

        await stage.says("After.")

        await stage.sees("After.")


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_the_screen_is_as_it_was_looked_at_dark_and_light(
    client: AsyncClient, size: tuple[int, int]
) -> None:
    session = f"screen-{size[0]}"
    await filled(client, session, MESSAGES[:60])
    async with staged(client, session=session, size=size) as stage:
        await stage.says("/compact --keep 8")
        await stage.says("What is still **open**?\n\n1. one\n2. two")

        place = SCREENS / f"{size[0]}x{size[1]}.txt"
        dark = normalised(stage.lines())
        assert dark == place.read_text("utf-8"), f"look at it, then write it to {place.name}"
        assert stage.app.screen.styles.background.brightness < 0.5
        stage.app.theme = LIGHT.name
        await stage.rests()
        assert normalised(stage.lines()) == dark, "they differ in nothing but colour"
        assert stage.app.screen.styles.background.brightness > 0.5
