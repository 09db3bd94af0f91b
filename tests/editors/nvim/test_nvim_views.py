"""What Neovim shows of hostile and long sessions, of another daemon's session, and in a flood of events."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.editors.nvim.driven import Neovim, headless, install
from tests.editors.stored import store_hostile, store_long
from tests.editors.terminal import same_screen
from tests.editors.world import (
    FLOOD,
    RIGHT_TO_LEFT,
    copied_session,
    daemon_command,
    fake_daemon,
    kill_and_wait,
    make_world,
    model,
)
from tests.support.client import Daemon
from tests.support.loopback import Answer, Loopback, Stall
from tests.support.talk import CHARS4, turns

pytestmark = pytest.mark.editor

SCREENS = Path(__file__).parent / "screens"


def test_hostile_titles_and_words_are_shown_as_text(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    store_hostile(world)
    with Neovim(world, {"cmd": [daemon_command(), "serve"]}, columns=120) as editor:
        screen = editor.terminal
        editor.command("Compactd sessions")
        chosen = screen.see("<img src=x")
        assert "owned<07><1b>[" in chosen
        screen.press("1", "Enter")
        editor.until("return require('compactd').state() ~= nil", "the session")
        editor.command("Compactd context")
        context = screen.see("In the context: 2 entries")
        assert "<img src=x onerror=alert(1)><1b>]0;owned" in context
        screen.type("q")
        editor.command("Compactd work")
        screen.see("now          <009b>31m bell <07> and back<08><08><2066> [e2]")
        screen.type("q")
        editor.command("Compactd chat")
        chat = screen.see("you: <CR>")
        assert "<1b>[2J<1b>[H<202e>gone %s %d" in chat
        assert "<009b>31m" in chat
        assert "bell <07> and back<08><08><2066>" in chat
        assert RIGHT_TO_LEFT not in chat
        title = editor.terminal._tmux("display-message", "-p", "#{pane_title}")
        assert "owned" not in title
        assert editor.notified() == []


def test_another_agents_session_is_imported_and_looked_at(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    path = copied_session(world)
    with Neovim(world, {"cmd": [daemon_command(), "serve"]}, columns=90, lines=24) as editor:
        editor.command(f"Compactd import {path.name}")
        editor.terminal.see("In the context: ")
        same_screen(editor.terminal.screen, SCREENS / "imported.txt")


def look_at(editor: Neovim, title: str) -> None:
    """The person picks the one session that there is."""
    editor.command("Compactd sessions")
    editor.terminal.see(title)
    editor.terminal.press("1", "Enter")
    editor.until("return require('compactd').state() ~= nil", "the session")


def test_two_neovims_on_one_session_the_second_can_only_read(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    store_hostile(world)
    setup = {"cmd": [daemon_command(), "serve"], "icon": "="}
    append = (
        "require('compactd').request('session/append', { session_id = 'evil', messages = {"
        "{ role = 'user', content = ('more '):rep(500) } } },"
        "function(failure) vim.g.code = failure and failure.code or 'done' end) return 1"
    )
    with Neovim(world, setup) as first, Neovim(world, setup) as second:
        look_at(first, "<img src=x")
        assert first.state()["read_only"] is True
        first.lua(append)
        assert first.until("return vim.g.code", "the first change") == "done"
        assert first.state()["read_only"] is False

        look_at(second, "<img src=x")
        second.until("return #vim.g.notified > 0", "word of the other program")
        assert ["open in another program" in said for said in second.notified()] == [True]
        second.until(
            "return require('compactd').statusline():find('open in another program') ~= nil",
            "the words in the status line",
        )
        used = second.used()
        second.lua(append)
        assert second.until("return vim.g.code", "the refusal") == 1004
        first.lua(append)
        second.until(
            f"return require('compactd').state().usage.current_context_tokens > {used} + 100",
            "what the first did",
        )
        assert first.notified() == []


def test_looking_takes_no_lock_and_a_change_does(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    home = world.home / "sessions"
    with Daemon(home) as agent, Neovim(world, {"cmd": [daemon_command(), "serve"]}) as editor:
        agent.call("session/start", session_id="s", title="Looked at", compaction=CHARS4)
        agent.call("session/append", session_id="s", messages=turns(6, 200))
        agent.call("session/close", session_id="s")
        look_at(editor, "Looked at")
        editor.command("Compactd context")
        editor.terminal.see("In the context: 12 entries")
        assert "open in another program" not in editor.lua("return require('compactd').statusline()")

        # An agent goes on with its session; the editor shows that, and says who has it.
        assert agent.call("session/start", session_id="s")["read_only"] is False
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "said elsewhere"}])
        editor.terminal.see("In the context: 13 entries")
        editor.until("return require('compactd').state().held", "the other program")
        editor.command("Compactd! compact keep=2")
        refusal = editor.until("return vim.g.notified[1]", "the refusal")
        assert f"process {agent.process.pid})" in refusal
        assert "close it there" in refusal

        # The agent lets go: now the editor can.
        agent.call("session/close", session_id="s")
        editor.until("return not require('compactd').state().held", "the end of the other program")
        editor.command("Compactd! compact keep=2")
        editor.terminal.see("✓ Compacted")
        editor.terminal.see("stands for")
        assert editor.state()["read_only"] is False
        assert len(editor.notified()) == 1

        # After a restart it is open in the same mode: the lock is the editor's again.
        old = editor.pid()
        kill_and_wait(old)
        editor.until("return #vim.g.notified > 1", "word of the restart")
        assert editor.state()["read_only"] is False
        assert agent.call("session/start", session_id="s")["read_only"] is True


def test_what_the_user_has_opened_stays_open_when_the_context_is_drawn_again(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with (
        Daemon(world.home / "sessions") as agent,
        Neovim(world, {"cmd": [daemon_command(), "serve"]}, lines=60) as editor,
    ):
        agent.call("session/start", session_id="s", title="Looked at", compaction=CHARS4)
        agent.call("session/append", session_id="s", messages=turns(6, 200))
        assert agent.call("session/compact", session_id="s", keep_recent=400)["compacted"]
        look_at(editor, "Looked at")
        editor.command("Compactd context")
        screen = editor.terminal
        summary = "stands for 10 messages"
        screen.see(summary)
        screen.type("gg6j")
        screen.press("Enter")
        screen.see("┆ e10 ")
        screen.type("G")
        screen.press("Tab")  # the text of the last message
        folds = (
            "local n = 0; for line = 1, vim.fn.line('$') do"
            "  if vim.fn.foldclosed(line) == -1 then n = n + 1 end"
            " end; return { vim.fn.line('$'), n }"
        )
        screen.see("        looked at it")
        lines, shown = editor.lua(folds)

        # Another program goes on with the session, so the context is drawn again.
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "said elsewhere"}])
        screen.see("said elsewhere")
        assert editor.lua(folds) == [lines + 2, shown]  # its text is folded


def test_a_chat_that_is_looked_at_follows_and_survives_a_restart_without_the_lock(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    home = world.home / "sessions"
    with Loopback([Answer(text="Answered here.")]) as provider, Daemon(home) as agent:
        setup = {
            "cmd": [daemon_command(), "serve"],
            "env": {"OPENAI_BASE_URL": f"{provider.base_url}/v1"},
        }
        agent.call("session/start", session_id="s", title="Talked about", model=model(provider.base_url))
        agent.call("session/append", session_id="s", messages=[{"role": "user", "content": "first word"}])
        agent.call("session/close", session_id="s")
        with Neovim(world, setup) as editor:
            look_at(editor, "Talked about")
            editor.command("Compactd chat")
            editor.terminal.see("first word")

            kill_and_wait(editor.pid())
            editor.until("return #vim.g.notified > 0", "word of the restart")
            assert editor.state()["read_only"] is True
            assert agent.call("session/start", session_id="s")["read_only"] is False
            agent.call(
                "session/append", session_id="s", messages=[{"role": "assistant", "content": "second word"}]
            )
            editor.terminal.see("second word")
            agent.call("session/close", session_id="s")
            editor.until("return require('compactd').state().held == false", "the end of the other program")

            editor.terminal.press("Escape")
            editor.terminal.type("GiAnd then?")
            editor.terminal.press("C-s")
            shown = editor.terminal.see("Answered here.")
            assert [shown.count(each) for each in ("first word", "second word", "› And then?")] == [1, 1, 1]
            assert editor.state()["read_only"] is False

            # Deleted elsewhere: it is gone here, too.
            editor.idle()
            look = "require('compactd.sessions')"
            editor.lua(f"{look}.request('session/close', {{ session_id = 's' }}, function() end) return 1")
            editor.until("return require('compactd').state() == nil", "the close")
            look_at(editor, "Talked about")
            agent.call("session/delete", session_id="s")
            editor.until("return require('compactd').state() == nil", "the deletion")


def test_five_thousand_entries_open_at_once(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)
    store_long(world, 5_000)

    done = headless(
        world,
        f"require('compactd').setup({{ cmd = {{ '{daemon_command()}', 'serve' }} }})\n"
        "local sessions = require('compactd.sessions')\n"
        "sessions.start({ session_id = 'long', title = 'long' }, function() end)\n"
        "vim.wait(100000, function() return sessions.current() ~= nil end, 1)\n"
        "vim.wait(300)\n"
        "local at, cpu = vim.uv.hrtime(), os.clock()\n"
        "vim.cmd('Compactd context')\n"
        "vim.wait(100000, function() return vim.bo.filetype == 'compactd-context' end, 1)\n"
        "vim.cmd('redraw!')\n"
        "print(('OPEN %.0f ms, CPU %.0f ms, %d lines, fold to %d'):format((vim.uv.hrtime() - at) / 1e6,\n"
        "  (os.clock() - cpu) * 1e3, vim.api.nvim_buf_line_count(0), vim.fn.foldclosedend(8)))\n"
        "vim.wait(60000, function() return vim.api.nvim_buf_line_count(0) >= 10006 end, 1)\n"
        "print(('WHOLE %.0f ms, %d lines, %s'):format((vim.uv.hrtime() - at) / 1e6,\n"
        "  vim.api.nvim_buf_line_count(0), vim.fn.getline(10005)))\n",
    )

    found = re.search(r"OPEN (\d+) ms, CPU (\d+) ms, (\d+) lines, fold to (\d+)", done.stderr)
    assert found, done.stderr
    whole = re.search(r"WHOLE \d+ ms, (\d+) lines, (.*)", done.stderr)
    assert whole, done.stderr
    print(found.group(), whole.group()[:60])
    assert int(found[3]) < 1_000, "a screen of them is shown before all of them are there"
    assert int(whole[1]) == 10_006
    assert whole[2].startswith("e5000 ")
    assert int(found[4]) == 8
    assert int(found[2]) < 3_000


def test_a_compaction_that_runs_is_shown_and_can_be_taken_back(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)
    with Loopback([Stall(text="## Goal")]) as provider:
        setup = json.dumps(
            {
                "cmd": [daemon_command(), "serve"],
                "model": model(provider.base_url),
                "env": {"OPENAI_BASE_URL": f"{provider.base_url}/v1"},
                "compaction": {"strategy": "summarize", "model": "openai-chat/gpt-4o"},
                "trace": "messages",
            }
        )
        done = headless(
            world,
            f"require('compactd').setup(vim.json.decode([==[{setup}]==]))\n"
            "local compactd, messages, done = require('compactd'), {}, false\n"
            "for n = 1, 12 do\n"
            "  local role = n % 2 == 1 and 'user' or 'assistant'\n"
            "  messages[n] = { role = role, content = ('word '):rep(400) .. n }\n"
            "end\n"
            "vim.cmd('Compactd start')\n"
            "vim.wait(100000, function() return compactd.state() ~= nil end, 5)\n"
            "compactd.request('session/append', { session_id = compactd.state().id, messages = messages },\n"
            "  function() done = true end)\n"
            "vim.wait(100000, function() return done end, 5)\n"
            "vim.cmd('Compactd! compact keep=2')\n"
            "vim.wait(100000, function()\n"
            "  return (compactd.state().compacting or {}).phase == 'summarize' end, 5)\n"
            "print('SHOWN ' .. compactd.statusline({ plain = true }))\n"
            "vim.cmd('Compactd abort')\n"
            "vim.wait(100000, function() return compactd.state().compacting == nil end, 5)\n"
            "vim.wait(300)\n"
            "print('COUNT ' .. compactd.state().message_count)\n"
            "print(table.concat(require('compactd.log').lines(), '\\n'))\n",
        )

    assert re.search(r"SHOWN ◔ compacting \d+ %", done.stderr), done.stderr
    assert "COUNT 12" in done.stderr
    assert "the compaction was cancelled; nothing was changed" in done.stderr
    assert re.search(r"→ +session/compact #\d+ \(\d+ bytes\)", done.stderr), "the wire is traced"


def test_a_flood_of_events_comes_to_the_screen_in_few_pieces_and_leaves_time_to_type(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)
    flood = fake_daemon(tmp_path, FLOOD)

    done = headless(
        world,
        f"require('compactd').setup({{ cmd = {{ '{flood}' }} }})\n"
        "vim.cmd('Compactd start')\n"
        "vim.wait(100000, function() return require('compactd').state() ~= nil end, 1)\n"
        "local told, gaps, last, done = 0, {}, vim.uv.hrtime(), false\n"
        "vim.api.nvim_create_autocmd('User', { pattern = 'CompactdUsage',\n"
        "  callback = function() told = told + 1 end })\n"
        "local timer = vim.uv.new_timer()\n"
        "timer:start(0, 2, function()\n"
        "  local now = vim.uv.hrtime() gaps[#gaps + 1] = (now - last) / 1e6 last = now end)\n"
        "local at = vim.uv.hrtime()\n"
        "require('compactd').request('session/undo', { session_id = 's' }, function() done = true end)\n"
        "vim.wait(100000, function() return done end, 5)\n"
        "timer:stop()\n"
        "table.sort(gaps)\n"
        "print('FLOOD' .. vim.json.encode({ ms = (vim.uv.hrtime() - at) / 1e6, told = told,\n"
        "  median = gaps[math.ceil(#gaps / 2)], p99 = gaps[math.ceil(#gaps * 0.99)], most = gaps[#gaps] }))",
    )

    assert "FLOOD" in done.stderr, done.stderr
    seen = json.loads(done.stderr.partition("FLOOD")[2].splitlines()[0])
    print(seen)
    assert seen["told"] <= seen["ms"] / 40 + 3
    # How quick it is stands above; a machine that is busy elsewhere must not fail it.
    assert seen["median"] < 250
