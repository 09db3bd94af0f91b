"""`make demo`: shows what compactd does with a real session, without a key and without network.

It starts a daemon, appends the recorded session in this folder, shows its size, compacts it, searches it, and
undoes and redoes the compaction. Then it kills the daemon and starts it again, and nothing is lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from compactd.client import Client

SESSION = Path(__file__).with_name("session.jsonl")
MODEL = "anthropic/claude-sonnet-4-5"
TARGET_TOKENS = 8_000
NEEDLE = "'i̇', 2"
"""Something that a tool printed early in the session: the result of `'İ'.casefold()`."""

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

console = Console(width=min(100, Console().width) if sys.stdout.isatty() else 100, highlight=False)


def step(text: str) -> None:
    """Prints a heading."""
    console.print(f"\n[bold]{text}[/bold]")


def context_of(client: Client, session: str) -> list[str]:
    """Returns the ids of the messages in the next request."""
    answer = client.call("session/context", {"session_id": session})
    return [str(message.get("entry_id")) for message in answer["messages"]]


def append_all(client: Client, session: str) -> int:
    """Appends the recorded session in a few calls. Returns the number of messages."""
    messages = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    for start in range(0, len(messages), 50):
        client.call("session/append", {"session_id": session, "messages": messages[start : start + 50]})
    return len(messages)


def show_state(client: Client, session: str) -> Mapping[str, object]:
    """Prints the size of the context, and where the numbers come from."""
    state = client.call("agent/state", {"session_id": session})
    usage, budget = state["token_usage"], state["budget"]
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, value, source in (
        ("messages", f"{state['message_count']}", ""),
        ("used", f"{usage['current_context_tokens']:,}", usage["current_context_source"]),
        ("window", f"{usage['context_window']:,}", budget["window"]["source"]),
        ("compacts", f"{usage['threshold_tokens']:,}", budget["threshold"]["source"]),
        ("full", f"{usage['percent']} %", ""),
    ):
        table.add_row(f"  {name}", value, f"[dim]{source}[/dim]")
    console.print(table)
    return state


def show_compaction(result: Mapping[str, object], took_s: float) -> None:
    """Prints the sizes before and after, and the summary that the model will read."""
    before, after = result["tokens_before"], result["tokens_after"]
    console.print(f"✓ Compacted {result['messages_removed']} messages")
    console.print(f"  Tokens: {before:,} → {after:,} (saved {result['tokens_saved']:,})")
    retention = result["retention"]
    table = Table(box=None, pad_edge=False)
    for column in ("", "before", "after"):
        table.add_column(column, justify="left" if not column else "right")
    table.add_row("  messages", str(result["messages_before"]), str(result["messages_after"]))
    table.add_row("  tokens", f"{before:,}", f"{after:,}")
    console.print(table)
    console.print(
        f"  how: {result['strategy']}, no model, {took_s:.2f} s · "
        f"kept word for word: {result['kept_messages']} messages, "
        f"{len(result['pinned_entry_ids'])} pinned · "
        f"details that came up more than once and are still there: {retention['score']:.0%}"
    )
    console.print(f"  files: {len(result['read_files'])} read, {len(result['modified_files'])} modified\n")
    console.print(str(result["summary"]), markup=False)


def spawn(home: str) -> Client:
    """Starts a daemon with its own data folder, without keys and without a proxy."""
    environment = {
        name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_PROXY"))
    }
    return Client(env={**environment, "COMPACTD_HOME": home})


def play(home: str) -> None:
    """Runs the demonstration."""
    client = spawn(home)
    start = {"session_id": "demo", "model": MODEL, "system_prompt": SYSTEM_PROMPT, "tools": TOOLS}
    step("1  Start a daemon and append a real session of work on this repository")
    client.call("session/start", start)
    began = time.monotonic()
    count = append_all(client, "demo")
    console.print(
        f"  {count} messages in {time.monotonic() - began:.2f} s, each stored durably before it was answered"
    )
    show_state(client, "demo")
    before = context_of(client, "demo")

    step(f"2  Compact it to {TARGET_TOKENS:,} tokens, without a key and without network")
    began = time.monotonic()
    result = client.call("session/compact", {"session_id": "demo", "target_tokens": TARGET_TOKENS})
    show_compaction(result, time.monotonic() - began)
    after = context_of(client, "demo")
    console.print(f"\n  context before: {before[0]} … {before[-1]} ({len(before)} messages)")
    console.print(f"  context after:  {' '.join(after)}", soft_wrap=False)

    step(f"3  Find something that was compacted away: {NEEDLE!r}")
    for hit in client.call("session/search", {"session_id": "demo", "query": NEEDLE})["hits"]:
        where = "in the context" if hit["in_context"] else "not in the context; session/expand returns it"
        console.print(f"  {hit['entry_id']} {hit['role']} ({where}): {hit['snippet']}", markup=False)

    step("4  Undo and redo")
    client.call("session/undo", {"session_id": "demo"})
    undone = context_of(client, "demo")
    console.print(f"  undo: {len(undone)} messages; as before: {undone == before}")
    client.call("session/redo", {"session_id": "demo"})
    redone = context_of(client, "demo")
    console.print(f"  redo: {len(redone)} messages; as after:  {redone == after}")

    step("5  Kill the daemon (SIGKILL) and start it again")
    history = client.call("session/history", {"session_id": "demo"})
    os.kill(client.pid, signal.SIGKILL)
    client.close()
    client = spawn(home)
    again = client.call("session/start", {"session_id": "demo"})
    same = client.call("session/history", {"session_id": "demo"}) == history
    console.print(
        f"  resumed: {again['resumed']} · context as it was: {context_of(client, 'demo') == after} · "
        f"history as it was ({len(history['entries'])} entries): {same}"
    )
    client.close()
    if not (same and again["resumed"] and undone == before and redone == after):
        raise SystemExit("the demo lost data. This is a bug; please report it")


def main() -> None:
    """Runs the demonstration in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="compactd-demo-") as home:
        play(home)
    command = Path(sys.executable).with_name("compactd")
    shown = os.path.relpath(command) if command.exists() else "compactd"
    step("Now try it with your own session (Claude Code, pi, an OpenAI message list):")
    console.print(f"  {shown} compact PATH/TO/SESSION.jsonl --target 8k", soft_wrap=True)


if __name__ == "__main__":
    main()
