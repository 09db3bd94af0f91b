"""A typical day in Neovim: a real editor, the real daemon, a scripted model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.nvim.driven import Neovim
from tests.editors.world import DAY, WINDOW, daemon_command, kill_and_wait, make_world, model
from tests.support.loopback import Loopback

pytestmark = pytest.mark.editor


def test_a_day_in_neovim(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Loopback(DAY) as provider:
        setup = {
            "cmd": [daemon_command(), "serve"],
            "model": model(provider.base_url),
            "compaction": {"context_window": WINDOW, "strategy": "extract"},
        }
        with Neovim(world, setup, columns=110, lines=32) as editor:
            screen = editor.terminal
            # Open, and ask: the model wants to read a file, the person lets it.
            editor.command("edit loader.py")
            editor.command("Compactd chat")
            screen.see("you: <CR> or <C-s> sends")
            screen.type("iWhy is an empty file read twice? Never touch the public API.")
            screen.press("C-s")
            screen.see("Let the model read loader.py?")
            screen.press("1", "Enter")
            screen.see("Note 59")
            editor.idle()
            first = editor.used()
            assert f"{round(100 * first / WINDOW)} %" in screen.screen()

            # Ask again: an edit is a diff, and is on the disk when it is accepted.
            screen.press("Escape")
            screen.type("GiMend it.")
            screen.press("C-s")
            screen.see("ga accept")
            assert "or read(path)" in (world.workspace / "loader.py").read_text()
            screen.type("ga")
            screen.see("Check 59")
            editor.idle()
            assert "if path in CACHE else read(path)" in (world.workspace / "loader.py").read_text()
            second = editor.used()
            assert second > first

            # Preview, with a focus: what goes and what stays. Then do it.
            editor.command("Compactd compact keep=2 the cache of the loader")
            screen.see("compact?")
            # Neovim draws the lines of the preview one after the other.
            preview = screen.see("kept: stays word for word (3)")
            assert "Tokens: " in preview
            assert "focus     the cache of the loader" in preview
            assert "summarised: goes" in preview
            assert "kept: stays word for word (3)" in preview
            assert editor.used() == second
            screen.press("Enter")
            screen.see("✓ Compacted")
            editor.until("local s = require('compactd').state() return s.usage.epoch > 1", "the compaction")
            editor.idle()
            third = editor.used()
            assert third < second
            assert editor.lua("return vim.g.compacted") == 4

            # Read the summary; it opens to the messages behind it.
            editor.command("Compactd context")
            context = screen.see("stands for")
            assert "summary" in context
            screen.press("/")  # search is one key away, and is left again
            screen.see("Search:")
            screen.press("Escape")
            screen.type("gg")
            screen.press("j", "j", "j", "j", "j", "j")
            screen.press("Tab")
            screen.see("## Goal")
            screen.press("Tab")
            screen.press("Enter")
            screen.see("┆ e1")
            screen.picture("neovim", "compactd in Neovim")
            screen.type("w")  # where the work stands
            screen.see("loader.py   1 edit, uncommitted")
            screen.see("constraints  Never touch the public API. [e1]")
            screen.type("/constraints")
            screen.press("Enter", "Enter")
            screen.see("e1 · user")
            screen.type("qq")
            editor.until("return vim.bo.filetype == 'compactd-context'", "the context")
            screen.type("q")
            editor.until("return vim.bo.filetype ~= 'compactd-context'", "the end of the context")

            # Search something that was compacted.
            editor.command("Compactd search empty file, so")
            hits = screen.see("summarised")
            assert "hit" in hits
            screen.press("1", "Enter")
            screen.see("A sentinel mends that")
            screen.type("q")

            # Undo, redo.
            editor.command("Compactd undo")
            screen.see("taken back; 8 messages")
            editor.until(
                f"return require('compactd').state().usage.current_context_tokens > {third}", "the undo"
            )
            editor.command("Compactd redo")
            screen.see("in force again")
            editor.until(
                f"return require('compactd').state().usage.current_context_tokens == {third}", "the redo"
            )

            # The daemon is killed; it comes back by itself, once said, and the day goes on.
            old = editor.pid()
            kill_and_wait(old)
            editor.until(
                f"local _, pid = require('compactd.daemon').ids() return pid and pid ~= {old}", "a new daemon"
            )
            editor.until("return #vim.g.notified > 0", "word of the restart")
            editor.command("Compactd chat")
            seq = editor.state()["seq"]
            screen.press("Escape")
            screen.type("GiWhat did we do?")
            screen.press("C-s")
            # The marks of Markdown are not in sight; the words are.
            screen.see("We mended the cache of the loader, and nothing")
            editor.idle(after=seq)
            told = editor.notified()
            assert len(told) == 1
            assert "signal 9" in told[0]
            assert "1 session resumed" in told[0]
    asked = [str(each.body["messages"][-1]["content"]) for each in provider.requests]
    assert len(asked) == 5
    assert "CACHE = {}" in asked[1]
