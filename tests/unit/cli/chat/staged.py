"""Runs the chat app without a terminal: a real daemon, and textual's pilot that presses keys."""

from __future__ import annotations

import os
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from compactd.cli.chat.app import Chat
from compactd.cli.chat.chat_session import ChatSession, no_tools
from compactd.cli.chat.start import ECHO
from compactd.cli.chat.styles import DARK
from compactd.client import AsyncClient, DaemonGone

DEADLINE_S = 30.0
MODEL = "anthropic/claude-sonnet-4-5"


def environment(home: Path, **more: str) -> dict[str, str]:
    """A daemon of one's own: its own home, no keys, no proxies, a terminal as large as it is."""
    left_out = ("_API_KEY", "_PROXY", "COLUMNS", "LINES")
    kept = {name: value for name, value in os.environ.items() if not name.endswith(left_out)}
    return {**kept, "COMPACTD_HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"), **more}


def client_of(home: Path, **more: str) -> AsyncClient:
    """Return a client of a daemon that echoes, or that has the environment variables `more` instead."""
    return AsyncClient(env=environment(home, **(more or ECHO)), answers={"tool/execute": no_tools})


class Stage:
    """An app that runs, and the hands and eyes of who sits before it."""

    def __init__(self, app: Chat, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    def lines(self) -> list[str]:
        """Return the lines on the screen, without spaces at their ends."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def seen(self) -> str:
        """Return the screen as one text."""
        return "\n".join(self.lines())

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Waits for it."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            assert time.monotonic() < deadline, f"never: {what}\n{self.seen()}"
            await self.pilot.pause(0.02)
        await self.pilot.pause()

    async def sees(self, text: str) -> None:
        """Waits for a text on the screen."""
        await self.until(lambda: text in self.seen(), text)

    async def rests(self) -> None:
        """Waits until nothing is under way."""
        app = self.app
        await self.pilot.pause()
        await self.until(
            lambda: (
                not app.is_busy
                and not app.is_compacting
                and all(one.name == "events" or one.is_finished for one in app.workers)
            ),
            "rest",
        )

    async def says(self, text: str) -> None:
        """Writes a line, sends it, and waits until it is done."""
        await self.sends(text)
        await self.rests()

    async def sends(self, text: str) -> None:
        """Writes a line and sends it."""
        self.app.prompting.focus()
        self.app.prompting.fill(text)
        await self.pilot.press("enter")

    async def presses(self, *keys: str) -> None:
        """Presses keys and waits until what they do is done."""
        await self.pilot.press(*keys)
        await self.rests()


@asynccontextmanager
async def staged(
    client: AsyncClient,
    *,
    session: str,
    is_echo: bool = True,
    size: tuple[int, int] = (120, 40),
    theme: str = DARK.name,
    **start: Any,
) -> AsyncIterator[Stage]:
    """An app with a session open, closed again at the end. Use it in the body of a test."""
    talk = ChatSession(client, is_echo=is_echo)
    await talk.open({"session_id": session, "model": MODEL, **start})
    app = Chat(talk, theme=theme, look_s=0.05)
    async with app.run_test(size=size) as pilot:
        stage = Stage(app, pilot)
        await stage.rests()
        yield stage
    # A test may have ended the daemon for good.
    with suppress(DaemonGone):
        await client.call("session/close", {"session_id": talk.id})


def normalised(lines: list[str]) -> str:
    """A screen without what differs from run to run, or with how well the engine compacts: the figures."""
    text = re.sub(r"\d", "0", "\n".join(lines))
    text = re.sub(r"kept 0+ %", "kept 00 %", text)
    text = re.sub(r"─{2,}", "──", text)
    text = re.sub(r"[█▓▒░]+·+", "▒·", text)
    return text.rstrip() + "\n"
