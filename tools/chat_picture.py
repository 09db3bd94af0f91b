"""Draws `compactd chat` as it is: `python tools/chat_picture.py [FILE.svg]`, by default docs/chat.svg.

The app itself is driven, before a daemon of its own, with the recorded session of examples/: no key, no
network, nothing of the user's is read or written. Needs `compactd[tui]`.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from textual.pilot import Pilot

from compactd.cli.chatting.app import Chat
from compactd.cli.chatting.start import ECHO
from compactd.cli.chatting.talk import Talk
from compactd.client import AsyncClient

ROOT = Path(__file__).resolve().parent.parent
SESSION = ROOT / "examples" / "session.jsonl"
SIZE = (132, 36)
MODEL = "anthropic/claude-sonnet-4-5"
DEADLINE_S = 60.0


async def done(app: Chat, pilot: Pilot[None]) -> None:
    """Waits until nothing is under way."""
    deadline = time.monotonic() + DEADLINE_S
    while app.is_busy or app.is_compacting or any(w.name != "events" and w.is_running for w in app.workers):
        if time.monotonic() > deadline:
            raise SystemExit("the chat did not come to rest")
        await pilot.pause(0.02)
    await pilot.pause(0.2)


async def picture(home: str) -> str:
    """The chat after a compaction, as SVG."""
    env = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_PROXY"))}
    messages = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    async with AsyncClient(env={**env, **ECHO, "COMPACTD_HOME": home}) as client:
        talk = Talk(client)
        await talk.open({"session_id": "picture", "model": MODEL})
        await client.call("session/append", {"session_id": "picture", "messages": messages[:-2]})
        await client.call("session/compact", {"session_id": "picture", "strategy": "extract"})
        await client.call("session/append", {"session_id": "picture", "messages": messages[-2:]})
        await talk.refresh()
        app = Chat(talk)
        async with app.run_test(size=SIZE) as pilot:
            await done(app, pilot)
            return app.export_screenshot(title="compactd chat")


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "chat.svg"
    with tempfile.TemporaryDirectory() as home:
        target.write_text(asyncio.run(picture(home)), "utf-8")
    print(f"wrote {target.name}, {target.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
