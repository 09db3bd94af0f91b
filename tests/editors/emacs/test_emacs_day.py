"""A typical day in Emacs: a real editor, the real daemon, a scripted model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.editors.emacs.driven import Emacs
from tests.editors.world import DAY, WINDOW, daemon_command, kill_and_wait, make_world, model
from tests.support.loopback import Loopback

pytestmark = pytest.mark.editor


def setup(base_url: str) -> str:
    """Return the user's init file."""
    parts = " ".join(f":{name} {json.dumps(value)}" for name, value in model(base_url).items())
    return (
        f'(setq compactd-command \'({json.dumps(daemon_command())} "serve")\n'
        f"      compactd-model '({parts})\n"
        f'      compactd-compaction \'(:context_window {WINDOW} :strategy "extract"))'
    )


def test_a_day_in_emacs(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    with Loopback(DAY) as provider, Emacs(world, setup(provider.base_url), columns=110, lines=32) as editor:
        screen = editor.terminal
        # Open, and ask: the model wants to read a file, the person lets it.
        editor.command("compactd-chat")
        screen.see("you: RET sends")
        screen.type("Why is an empty file read twice? Never touch the public API.")
        screen.press("Enter")
        screen.see("Let the model read loader.py?")
        screen.press("y")
        screen.see("Note 59")
        editor.idle()
        first = editor.used()
        screen.see(f"{round(100 * first / WINDOW)} %")

        # Ask again: an edit is a diff, and is on the disk when it is accepted.
        screen.type("Mend it.")
        screen.press("Enter")
        screen.see("y take it  n refuse it")
        assert "or read(path)" in (world.workspace / "loader.py").read_text()
        screen.press("y")
        screen.see("Check 59")
        editor.idle()
        assert "if path in CACHE else read(path)" in (world.workspace / "loader.py").read_text()
        second = editor.used()
        assert second > first

        # Preview, with a focus: what goes and what stays. Then do it.
        editor.command("compactd-compact")
        screen.see("Focus of the summary")
        screen.type("the cache of the loader")
        screen.press("Enter")
        screen.see("Messages to keep")
        screen.press("2", "Enter")
        preview = screen.see("kept: stays word for word (3)")
        assert "Tokens: " in preview
        assert "focus     the cache of the loader" in preview
        assert "summarised: goes" in preview
        assert editor.used() == second
        screen.press("Enter")
        editor.said("✓ Compacted")
        editor.until("(> (compactd-session-usage-of (compactd-session-current) :epoch) 1)", "the compaction")
        editor.idle()
        third = editor.used()
        assert third < second

        # Read the summary; it opens to the messages behind it.
        editor.command("compactd-context")
        screen.see("stands for 4 messages")
        screen.press("M-<")
        for _ in range(6):
            screen.press("n")
        screen.press("Tab")
        screen.see("## Goal")
        screen.press("Tab")
        screen.press("Enter")
        screen.see("┆ e1")
        screen.picture("emacs", "compactd in Emacs")
        screen.press("w")  # where the work stands
        screen.see("loader.py   1 edit, uncommitted")
        screen.see("constraints  Never touch the public API. [e1]")
        screen.press("C-s")
        screen.type("constraints")
        screen.press("Enter", "Enter")
        screen.see("*compactd e1*")
        screen.press("q")
        screen.see("*compactd work")
        screen.press("q")
        screen.press("q")

        # Search something that was compacted.
        editor.command("compactd-search")
        screen.see("Search:")
        screen.type("empty file, so")
        screen.press("Enter")
        screen.see("hit")
        screen.press("Tab", "Tab")
        screen.see("summarised")
        screen.press("Enter")
        screen.see("A sentinel mends that")
        screen.press("q")

        # Undo, redo.
        editor.command("compactd-undo")
        editor.said("taken back; 8 messages")
        editor.until(
            f"(> (compactd-session-usage-of (compactd-session-current) :current_context_tokens) {third})",
            "the undo",
        )
        editor.command("compactd-redo")
        editor.said("in force again")
        editor.until(
            f"(= (compactd-session-usage-of (compactd-session-current) :current_context_tokens) {third})",
            "the redo",
        )

        # The daemon is killed; it comes back by itself, once said, and the day goes on.
        old = editor.pid()
        kill_and_wait(old)
        editor.until(f"(and (compactd-daemon-pid) (/= (compactd-daemon-pid) {old}))", "a new daemon")
        editor.said("1 session resumed")
        editor.command("compactd-chat")
        seq = editor.seq()
        screen.type("What did we do?")
        screen.press("Enter")
        screen.see("We mended the cache")
        editor.idle(after=seq)
        assert editor.messages().count("was started again") == 1
        assert "signal 9" in editor.messages()
    asked = [str(each.body["messages"][-1]["content"]) for each in provider.requests]
    assert len(asked) == 5
    assert "CACHE = {}" in asked[1]
