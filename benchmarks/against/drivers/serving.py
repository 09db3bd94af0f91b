"""The child process of a benchmark: runs one contender (compactd or another library) and times itself.

Requests and answers are one JSON object per line. A row is one thing that is measured. Requests:

- `{"do": "store", "file": F, "to": T}` writes the session file F in the contender's own format to T.
- `{"do": "prepare", "row": R, "file": F, "keep": K}` loads a session for the row R; this is not timed. For
  the row `load`, F is what `store` wrote.
- `{"do": "run"}` runs the row once.

Answers: `{"s": wall seconds, "core_s": CPU seconds, "told": {...}, ...}`, or `{"error": "..."}`. The first
line is sent when the imports are done. This file imports only the standard library, because it runs in the
environment of each contender.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter, process_time

Message = dict[str, object]
Told = dict[str, object]
"""The result of a run. `HELD` is the object it made, kept until the memory is read. `AFTER`, a function, is
called after that."""
Run = Callable[[], Told]
Prepare = Callable[[str, int], Run]
"""Takes a session file and the number of tokens to keep, and returns the function that is timed."""
Store = Callable[[str, str], None]

HELD = "held"
AFTER = "after"


def serve(rows: Mapping[str, Prepare], version: str, store: Store | None = None) -> None:
    """Read requests from stdin and answer each on stdout, until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints must not be read as an answer

    def answer(value: Mapping[str, object]) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    answer({"version": version, "rss": resident_bytes()})
    run: Run | None = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if asked["do"] == "store" and store is not None:
                store(asked["file"], asked["to"])
                answer({})
            elif asked["do"] == "prepare":
                run = None
                gc.collect()
                run = rows[asked["row"]](asked["file"], int(asked["keep"]))
                answer({"rss": resident_bytes()})
            elif run is not None:
                answer(_timed(run))
        except Exception as error:  # reported to the parent process; the traceback goes to stderr
            traceback.print_exc()
            answer({"error": f"{type(error).__name__}: {error}"[:400]})


def _timed(run: Run) -> dict[str, object]:
    gc.collect()
    before = resident_bytes()
    core, began = process_time(), perf_counter()
    told = run()
    took, core_s = perf_counter() - began, process_time() - core
    after = resident_bytes()
    told.pop(HELD, None)
    undo = told.pop(AFTER, None)
    if callable(undo):
        undo()
    return {"s": took, "core_s": core_s, "told": told, "rss": after, "rss_before": before}


def messages_in(file: str) -> list[Message]:
    """Return the messages of a session file that has one JSON message per line."""
    with Path(file).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def blocks_of(message: Message) -> list[Message]:
    """Return the content of a message as blocks."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)  # type: ignore[call-overload]


def text_of(message: Message) -> str:
    """Return the text blocks of a message, joined with newlines."""
    return "\n".join(str(block["text"]) for block in blocks_of(message) if block["type"] == "text")


def pieces(messages: list[Message]) -> list[str]:
    """Return every text that a model reads, the input of all token counters: texts, tool results, and for a
    tool call its name followed by its arguments as compact JSON."""
    found: list[str] = []
    for message in messages:
        for block in blocks_of(message):
            if block["type"] == "text":
                found.append(str(block["text"]))
            elif block["type"] == "tool_call":
                found.append(f"{block['name']}{compact(block['arguments'])}")
            else:
                found.append(str(block["content"]))
    return found


def compact(value: object) -> str:
    """Return `value` as JSON without white space."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def openai_messages(messages: list[Message]) -> list[Message]:
    """The session in the shape of OpenAI's chat API, which half of the peers take."""
    made: list[Message] = []
    for message in messages:
        calls, results = [], []
        for block in blocks_of(message):
            if block["type"] == "tool_call":
                function = {"name": block["name"], "arguments": compact(block["arguments"])}
                calls.append({"id": block["call_id"], "type": "function", "function": function})
            elif block["type"] == "tool_result":
                results.append(
                    {"role": "tool", "tool_call_id": block["call_id"], "content": block["content"]}
                )
        if results:
            made += results
        elif calls:
            made.append({"role": "assistant", "content": text_of(message), "tool_calls": calls})
        else:
            made.append({"role": message["role"], "content": text_of(message)})
    return made


def openai_chars(messages: list[Message]) -> int:
    """Characters of such messages: what a rewriting leaves, in a unit that all share."""
    total = 0
    for message in messages:
        content = message.get("content")
        total += len(content) if isinstance(content, str) else 0
        for call in message.get("tool_calls") or []:  # type: ignore[attr-defined]
            total += len(call["function"]["name"]) + len(call["function"]["arguments"])
    return total


def resident_bytes() -> int:
    """Return the resident memory of this process now; its peak if the system does not report the current
    value."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024
