"""Draws `compactd chat` for docs/clients/chat.md.

    python tools/chat_picture.py [FILE.svg | --check]

It runs the real app with its own daemon and the recorded session in examples/. It needs no key and no
network, and does not read or write the user's data. Needs `compactd[tui]`. By default it writes
docs/chat.svg. `--check` writes nothing and exits with 1 if the app now shows other words than that file.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import tempfile
import time
from html import unescape
from pathlib import Path

from textual.pilot import Pilot

from compactd.cli.chat.app import Chat
from compactd.cli.chat.chat_session import ChatSession
from compactd.cli.chat.start import ECHO
from compactd.client import AsyncClient

ROOT = Path(__file__).resolve().parent.parent
SESSION = ROOT / "examples" / "session.jsonl"
PICTURE = ROOT / "docs" / "chat.svg"
SIZE = (132, 36)
MODEL = "anthropic/claude-sonnet-4-5"
DEADLINE_S = 60.0


async def done(app: Chat, pilot: Pilot[None]) -> None:
    """Waits until the app is idle."""
    deadline = time.monotonic() + DEADLINE_S
    while app.is_busy or app.is_compacting or any(w.name != "events" and w.is_running for w in app.workers):
        if time.monotonic() > deadline:
            raise SystemExit("the chat did not become idle in time")
        await pilot.pause(0.02)
    await pilot.pause(0.2)


async def picture(home: str) -> str:
    """Returns the chat after a compaction, as SVG."""
    env = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_PROXY"))}
    messages = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    async with AsyncClient(env={**env, **ECHO, "COMPACTD_HOME": home}) as client:
        talk = ChatSession(client)
        await talk.open({"session_id": "picture", "model": MODEL})
        await client.call("session/append", {"session_id": "picture", "messages": messages[:-2]})
        await client.call("session/compact", {"session_id": "picture", "strategy": "extract"})
        await client.call("session/append", {"session_id": "picture", "messages": messages[-2:]})
        await talk.refresh()
        app = Chat(talk)
        async with app.run_test(size=SIZE) as pilot:
            await done(app, pilot)
            return of_itself(app.export_screenshot(title="compactd chat"))


def of_itself(svg: str) -> str:
    """Returns the SVG without web fonts: a system font replaces them."""
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    mono = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
    return re.sub(r"Fira Code, monospace", mono, svg)


def words_of(svg: str) -> list[str]:
    """Returns the words in the SVG without numbers and bars, which change with the engine."""
    texts = map(unescape, re.findall(r"<text[^>]*>([^<]*)</text>", svg))
    return [word for text in texts for word in re.sub(r"[\d▓▒░·│]+", " ", text).split()]


def drawn() -> str:
    """Draws the picture in a temporary data folder."""
    with tempfile.TemporaryDirectory() as home:
        return asyncio.run(picture(home))


def main(arguments: list[str]) -> int:
    """Writes or checks the picture. Returns the exit code."""
    svg = drawn()
    if arguments == ["--check"]:
        if not PICTURE.is_file() or words_of(PICTURE.read_text("utf-8")) != words_of(svg):
            print("docs/chat.svg is out of date; run: python tools/chat_picture.py", file=sys.stderr)
            return 1
        return 0
    target = Path(arguments[0]) if arguments else PICTURE
    target.write_text(svg, "utf-8")
    print(f"wrote {target.name}, {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
