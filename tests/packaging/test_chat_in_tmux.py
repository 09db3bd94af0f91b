"""`compactd chat` in a real tmux: prompts, compaction, undo, quit; the shell's screen is restored."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client import environment

pytestmark = pytest.mark.system

DEADLINE_S = 60.0


class Tmux:
    """A server of its own, with one window."""

    def __init__(self, home: Path, size: tuple[int, int]) -> None:
        self._socket = str(home / "tmux")
        env = environment(home / "data", {"TERM": "xterm-256color"})
        env.pop("TMUX", None)
        self._env = env
        columns, lines = size
        self.tmux("-f", os.devnull, "new-session", "-d", "-x", str(columns), "-y", str(lines), "sh")

    def tmux(self, *arguments: str) -> str:
        """Run a tmux command. Return its output."""
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(
            command, env=self._env, capture_output=True, text=True, timeout=30, check=True
        ).stdout

    def screen(self) -> str:
        """Return the text on the screen."""
        return self.tmux("capture-pane", "-p")

    def types(self, text: str) -> None:
        """A line."""
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def sees(self, text: str) -> str:
        """Waits for it; the screen."""
        deadline = time.monotonic() + DEADLINE_S
        while text not in (screen := self.screen()):
            assert time.monotonic() < deadline, f"never: {text}\n{screen}"
        return screen


@pytest.fixture(params=[(80, 24), (200, 60)], ids=["80x24", "200x60"])
def tmux(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tmux]:
    one = Tmux(tmp_path, request.param)
    yield one
    one.tmux("kill-server")


def test_a_talk_is_compacted_undone_redone_and_quit(tmux: Tmux) -> None:
    tmux.sees("#" if os.geteuid() == 0 else "$")  # what is typed before the prompt comes before it
    tmux.types("PS1='ready$ '")
    tmux.sees("\nready$")
    tmux.types(f"{sys.executable} -m compactd chat --echo --model anthropic/claude-sonnet-4-5")
    tmux.sees("ask, or / for commands")
    for word in ("First", "Second"):
        tmux.types(f"{word} question, with **much** to say. " * 12)
        tmux.sees(f"{word} question, with much to say.")
    tmux.types("/compact --keep 2")
    tmux.sees("compacted 2 messages")
    tmux.types("/undo")
    tmux.sees("undone: 4 messages in the context")
    tmux.types("/redo")
    tmux.sees("redone: 3 messages in the context")
    tmux.types("/quit")

    screen = tmux.sees("is stored; continue it with: compactd chat --session")
    assert "compacted 2 messages" not in screen, "the other screen is gone"
    tmux.types("echo again")
    tmux.sees("again\nready$")
    assert tmux.tmux("display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}") == "0 1 0\n"
