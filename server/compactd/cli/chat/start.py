"""Whether the app can be shown here, and its run from the first to the last byte on the terminal."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from importlib.util import find_spec

from compactd.cli.framework.exit_codes import DONE, FAILED
from compactd.cli.framework.page import one_line
from compactd.client import AsyncClient

LEAST_COLUMNS = 40
LEAST_LINES = 10
ECHO = {"COMPACTD_STRATEGY": "extract"}
"""An echo sends nothing anywhere: no model summarises either."""

INSTALL = "The chat goes line by line: pip install 'compactd[tui]' shows it whole."


def why_not(environ: Mapping[str, str]) -> str | None:
    """Why the app cannot be shown here, empty where nobody need be told; none where it can be."""
    return reason_of(
        is_terminal=sys.stdin.isatty() and sys.stdout.isatty(),
        term=environ.get("TERM", ""),
        size=shutil.get_terminal_size(),
        has_textual=find_spec("textual") is not None,
    )


def reason_of(*, is_terminal: bool, term: str, size: tuple[int, int], has_textual: bool) -> str | None:
    """The same, of a terminal of `size` columns and lines."""
    if not is_terminal:
        return ""
    if term in ("", "dumb"):
        return "The chat goes line by line: this terminal is dumb."
    columns, lines = size
    if columns < LEAST_COLUMNS or lines < LEAST_LINES:
        return f"The chat goes line by line: {columns} by {lines} is too small for more."
    return None if has_textual else INSTALL


def run_app(start: Mapping[str, object], *, is_echo: bool, theme: str | None) -> int:
    """Holds a chat; the exit code. Raises what its client raises, before anything is shown."""
    return asyncio.run(_run(start, is_echo=is_echo, theme=theme))


async def _run(start: Mapping[str, object], *, is_echo: bool, theme: str | None) -> int:
    from compactd.cli.chat.app import Chat
    from compactd.cli.chat.plain import Talk, no_tools
    from compactd.cli.chat.styles import theme_name

    env = {**os.environ, **ECHO} if is_echo else None
    async with AsyncClient(env=env, answers={"tool/execute": no_tools}) as client:
        talk = Talk(client, is_echo=is_echo)
        await talk.open(start)
        app = Chat(talk, theme=theme_name(theme, os.environ))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # Otherwise the terminal would stay as the app has made it.
            loop.add_signal_handler(number, app.exit)
        await app.run_async()
    if app.return_code:
        return FAILED
    if talk.entries:
        name = one_line(talk.id)
        sys.stdout.write(f"session {name} is kept: compactd chat --session {name}\n")
    return DONE
