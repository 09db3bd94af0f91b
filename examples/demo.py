"""`make demo`: shows what compactd does with a real session, without a key and without network.

It starts a daemon, appends the recorded session in this folder, compacts it, searches it, and undoes and
redoes the compaction. Then it kills the daemon, starts it again, and compares everything. It prints a page;
the whole summary and all details are in a file that the last line names.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from compactd.client import Client

SESSION = Path(__file__).with_name("session.jsonl")
MODEL = "anthropic/claude-sonnet-4-5"
TARGET_TOKENS = 8_000
NEEDLE = "Line too long"
"""Part of what a tool printed in the session: the linter's words about a line. The summary leaves it out."""
FULL_OUTPUT = Path("build") / "demo.txt"
SECTIONS = ("Goal", "Constraints & Preferences", "Done", "What Failed")
"""The sections of the summary of which the page shows the first item."""
MILLION = 1_000_000

SYSTEM_PROMPT = """You are a coding agent in the repository of compactd.
Read before you change, run the tests, say what you did."""
TOOLS = [
    {
        "name": name,
        "description": text,
        "input_schema": {"type": "object", "properties": {key: {"type": "string"} for key in keys}},
    }
    for name, text, keys in (
        ("read", "Lines of a file.", ("path", "offset", "limit")),
        ("edit", "Replaces one place of a file.", ("path", "old_string", "new_string")),
        ("write", "Writes a file.", ("path", "content")),
        ("bash", "Runs a shell command.", ("command",)),
    )
]


class Output:
    """Prints the page, and writes the page and all details to a file."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
        self.width = max(40, min(columns, 100))
        self._is_colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def line(self, text: str = "") -> None:
        """Prints a line. What does not fit into the terminal is cut off; the file has all of it."""
        print(clip(text, self.width))
        print(text, file=self._file)

    def step(self, text: str) -> None:
        """Prints a heading."""
        shown = clip(text, self.width)
        print(f"\033[1m{shown}\033[0m" if self._is_colored else shown)
        print(f"\n{text}", file=self._file)

    def detail(self, text: str) -> None:
        """Writes a text to the file only."""
        print(text, file=self._file)


def clip(text: str, width: int) -> str:
    """Returns the text, cut off with an ellipsis if it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def context_of(client: Client, session: str) -> list[str]:
    """Returns the ids of the messages in the next request."""
    answer = client.call("session/context", {"session_id": session})
    return [str(message.get("entry_id")) for message in answer["messages"]]


def append_all(client: Client, session: str, messages: Sequence[object]) -> None:
    """Appends messages in a few calls."""
    for start in range(0, len(messages), 50):
        client.call("session/append", {"session_id": session, "messages": messages[start : start + 50]})


def items_of(summary: str, section: str) -> list[str]:
    """Returns the items of a section of the summary, without the references at their beginning."""
    found: list[str] = []
    is_inside = False
    for line in summary.splitlines():
        if line.startswith("#"):
            is_inside = line.lstrip("# ") == section
        elif is_inside and line.startswith("- "):
            item = line.removeprefix("- ")
            found.append(item.partition("] ")[2] if item.startswith("[e") else item)
    return found


def size_rows(
    client: Client, messages: Sequence[Mapping[str, object]], result: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """Yields (name, "before → after") for the sizes, and for what they mean in money and in answers."""
    state = client.call("agent/state", {"session_id": "demo"})
    answers = sum(message["role"] == "assistant" for message in messages)
    limit, price = state["token_usage"]["threshold_tokens"], input_price(client)
    before, after = result["tokens_before"], result["tokens_after"]
    left = [round((limit - used) * answers / before) for used in (before, after)]
    yield "messages", f"{result['messages_before']:>8}  → {result['messages_after']:>7}"
    yield "tokens", f"{before:>8,}  → {after:>7,}"
    yield (
        "next request",
        f"{f'${before * price:.3f}':>8}  → {f'${after * price:.3f}':>7}  input at list price, nothing cached",
    )
    yield "answers left", f"{left[0]:>8}  → {left[1]:>7}  before a compaction is due"


def input_price(client: Client) -> float:
    """Returns the price of an input token in dollars."""
    return float(client.call("models/lookup", {"model": MODEL})["pricing"]["input"]) / MILLION


def spawn(home: str) -> Client:
    """Starts a daemon with its own data folder, without keys and without a proxy."""
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_PROXY"))
    }
    return Client(env={**environment, "COMPACTD_HOME": home})


def play(home: str, out: Output) -> None:
    """Runs the demonstration."""
    messages = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    client = spawn(home)
    start = {"session_id": "demo", "model": MODEL, "system_prompt": SYSTEM_PROMPT, "tools": TOOLS}
    client.call("session/start", start)
    began = time.monotonic()
    append_all(client, "demo", messages)
    out.step("1  A recorded coding session goes to the daemon, which stores every message")
    out.line(f"   {len(messages)} messages in {time.monotonic() - began:.2f} s")
    before = context_of(client, "demo")

    began = time.monotonic()
    result = client.call("session/compact", {"session_id": "demo", "target_tokens": TARGET_TOKENS})
    took_s = time.monotonic() - began
    out.step(f"2  Compacted to {TARGET_TOKENS:,} tokens in {took_s:.2f} s: no model, no key, no network")
    for name, text in size_rows(client, messages, result):
        out.line(f"   {name:13}{text}")
    after = context_of(client, "demo")

    summary = str(result["summary"])
    out.step("3  What the model still knows: from the summary, in the words of the session")
    for section in SECTIONS:
        items = items_of(summary, section)
        name = section.partition(" &")[0]
        more = f"  (+{len(items) - 1})"
        room = out.width - 16 - len(more)
        out.line(f"   {name:13}{clip(items[0], room) if items else '(none)'}{more if items[1:] else ''}")
    read, modified = len(result["read_files"]), len(result["modified_files"])
    out.line(f"   Files        {read} read, {modified} modified, all named")
    out.detail(
        f"   kept word for word: {result['kept_messages']} messages. Details that came up more than "
        f"once and are still there: {result['retention']['score']:.0%}\n\n{summary}\n\n"
        f"   context before: {before[0]} … {before[-1]} ({len(before)} messages)\n"
        f"   context after:  {' '.join(after)}"
    )

    out.step(f"4  Found again, though the summary left it out: “{NEEDLE}”")
    hits = client.call("session/search", {"session_id": "demo", "query": NEEDLE})["hits"]
    found = next(hit for hit in hits if not hit["in_context"])
    line = next(line for line in str(found["snippet"]).splitlines() if NEEDLE in line)
    out.line(f"   message {found['entry_id']}, from a {found['role']}: {line.strip()}")

    client.call("session/undo", {"session_id": "demo"})
    undone = context_of(client, "demo")
    client.call("session/redo", {"session_id": "demo"})
    redone = context_of(client, "demo")
    out.step("5  Undone and redone")
    out.line(f"   undo: {len(undone)} messages, the same as before: {yes(undone == before)}")
    out.line(f"   redo: {len(redone)} messages, the same as after: {yes(redone == after)}")

    history = client.call("session/history", {"session_id": "demo"})
    os.kill(client.pid, signal.SIGKILL)
    client.close()
    client = spawn(home)
    again = client.call("session/start", {"session_id": "demo"})
    same_context = context_of(client, "demo") == after
    same_history = client.call("session/history", {"session_id": "demo"}) == history
    client.close()
    out.step("6  The daemon was killed (SIGKILL) and started again")
    out.line(
        f"   context unchanged: {yes(same_context)} · "
        f"history unchanged ({len(history['entries'])} entries): {yes(same_history)}"
    )
    checks = (undone == before, redone == after, again["resumed"], same_context, same_history)
    if not all(checks) or NEEDLE in summary:
        raise SystemExit("the demo lost data, or its summary changed. This is a bug; please report it")


def yes(is_so: bool) -> str:
    """Returns "yes" or "NO"."""
    return "yes" if is_so else "NO"


def open_file() -> TextIO:
    """Opens the file for the full output: `FULL_OUTPUT`, or a temporary file if that cannot be written."""
    try:
        FULL_OUTPUT.parent.mkdir(exist_ok=True)
        return FULL_OUTPUT.open("w", encoding="utf-8")
    except OSError:
        return tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", prefix="compactd-demo-", suffix=".txt", delete=False
        )


def main() -> None:
    """Runs the demonstration in a temporary folder."""
    command = Path(sys.executable).with_name("compactd")
    shown = os.path.relpath(command) if command.exists() else "compactd"
    with tempfile.TemporaryDirectory(prefix="compactd-demo-") as home, open_file() as file:
        out = Output(file)
        play(home, out)
        out.line()
        # Not cut off: both are for copying.
        print(f"Your own session: {shown} compact FILE --target 8k")
        print(f"The whole summary and all details: {file.name}")


if __name__ == "__main__":
    main()
