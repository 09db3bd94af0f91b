"""Start the chat app: check whether the terminal can show it, run it, and restore the terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec

from compactd.cli.framework.exit_codes import DONE, FAILED, INTERRUPTED
from compactd.cli.framework.page import one_line
from compactd.client import AsyncClient, DaemonGone, RpcError

MIN_COLUMNS = 40
MIN_LINES = 10
ECHO = {"COMPACTD_STRATEGY": "extract", "COMPACTD_SHARED": ""}
"""Environment variables of the daemon in echo mode. Echo mode sends nothing anywhere, so summaries are made
without a model.
"""


def no_textual() -> str:
    """Return that the app is not installed, and the command that installs it."""
    from compactd._runtime.installation import install_command

    return f"The chat reads one prompt per line. For the full-screen app: {install_command('tui')}"


def why_no_app(environ: Mapping[str, str]) -> str | None:
    """Return why the app cannot be shown: None if it can, an empty text if no explanation is needed."""
    return why_no_app_in(
        is_terminal=sys.stdin.isatty() and sys.stdout.isatty(),
        term=environ.get("TERM", ""),
        size=shutil.get_terminal_size(),
        has_textual=find_spec("textual") is not None,
    )


def why_no_app_in(*, is_terminal: bool, term: str, size: tuple[int, int], has_textual: bool) -> str | None:
    """Return the same as `why_no_app`, for a terminal with the given properties. `size`: (columns, lines)."""
    if not is_terminal:
        return ""
    if term in ("", "dumb"):
        return "The chat reads one prompt per line, because this terminal cannot move the cursor (TERM)."
    columns, lines = size
    if columns < MIN_COLUMNS or lines < MIN_LINES:
        return (
            f"The chat reads one prompt per line: the app needs a terminal larger than {columns} by {lines}."
        )
    return None if has_textual else no_textual()


def run_app(start: Mapping[str, object], *, is_echo: bool, theme: str | None) -> int:
    """Run the app until the user quits. Return the exit code. If the session cannot be opened, raise the
    client's error before anything is shown. `start`: the params of `session/start`.
    """
    return asyncio.run(_run(start, is_echo=is_echo, theme=theme))


async def _run(start: Mapping[str, object], *, is_echo: bool, theme: str | None) -> int:
    from compactd.cli.chat.app import Chat
    from compactd.cli.chat.chat_session import ChatSession, no_tools
    from compactd.cli.chat.styles import theme_name

    env = {**os.environ, **ECHO} if is_echo else None
    async with AsyncClient(env=env, answers={"tool/execute": no_tools}) as client:
        talk = ChatSession(client, is_echo=is_echo)
        await talk.open(start)
        app = Chat(talk, theme=theme_name(theme, os.environ))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # The app must restore the terminal before the process ends.
            code = INTERRUPTED if number == signal.SIGINT else DONE
            loop.add_signal_handler(number, partial(app.exit, return_code=code))
        await app.run_async()
        # If the daemon is gone, the session stays. Lists do not show empty sessions.
        with suppress(RpcError, DaemonGone, TimeoutError):
            await talk.refresh()
            await talk.delete_if_unused()
    if app.return_code not in (DONE, INTERRUPTED):
        return FAILED
    if talk.entries:
        name = one_line(talk.id)
        sys.stdout.write(f"session {name} is stored; continue it with: compactd chat --session {name}\n")
    return INTERRUPTED if app.return_code == INTERRUPTED else DONE
