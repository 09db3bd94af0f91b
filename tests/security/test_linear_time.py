"""Texts made to be slow to read: four times the length takes about four times as long, in every reader.

CPU time of this process is measured, and compared with that of the shorter text, so a slow or busy machine
does not matter. Quadratic work would take sixteen times as long.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import process_time
from types import FrameType

import msgspec
import pytest
from msgspec import Raw

from compactd.core.authors.authors import spans
from compactd.core.constraints.constraints import limits_in
from compactd.core.extract.earlier import read_sections
from compactd.core.extract.extract import ExtractSource
from compactd.core.extract.recent_files import last_files
from compactd.core.history.entries import Appended, Compacted, Item
from compactd.core.history.titles import title_of
from compactd.core.overflow.classify import FailureReport, classify
from compactd.core.planning.plan import Plan, plan
from compactd.core.planning.prune import stub_text
from compactd.core.planning.request import CompactRequest
from compactd.core.redaction.redaction import Codec, redact
from compactd.core.summary.answers import clean_answer
from compactd.core.summary.compaction import SummaryInput, compact
from compactd.core.text.atoms import atoms, commands, sentences
from compactd.core.work.state import WorkReader
from compactd.formats.agents import claude_code, openhands, openhands_v1
from compactd.formats.files.detect import read
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.neutral_out import encode_message
from compactd.models.providers.secret import Secret, blot_keys
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import (
    Block,
    CompactionResult,
    Message,
    Meta,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from compactd.session.search import search
from tests.support.client import Daemon
from tests.support.dialogue import drive, inputs_of, view_of

SIZE = 3_000
TIMES = 4
MOST = 10.0
"""The largest allowed ratio to the shorter text's time: 4 is linear, 16 is quadratic."""
UNNOTICED_S = 0.08
"""Times below this are too short to measure or to notice."""

PIECES = (
    *("a", " ", "\n", "-", "`", '"', "'", "\\", "{", "[", "<", "(", "_", "0", "/", ".", "é", "あ", "#", "|"),
    *("a.", "a/", "a b ", "never ", "never\n", "1.", "https://", "--a", "```\n", "> ", "* ", "e1 ", "[e1] "),
    *("Error: ", "aA", "\\u", '\\"', '{"a":', "[[", "1\t", "a\r", "<a>", "a=", "│ ", "1→", "\u2028", "x1-"),
    *("\x1b[", "1.2.3", "...", " .", "\n\n", "a,b", "max 8k tokens ", "<system-reminder>", "{'a': '"),
    *("**a ", "do not:\n", "it says:\n", "# a\n", "all a "),
    *("at a.b(c.d:1)\n", "2026-01-01 00:00:00 ", "Traceback (most recent call last):\n", "don't "),
)
"""Repeated, each a way to make a pattern try again: runs, openings without an end, what almost matches."""


def item(number: int, role: Role, *blocks: Block) -> Item:
    return Item(entry_id=f"e{number}", body=Message(role=role, content=blocks), tokens=9)


def call(text: str) -> ToolCall:
    return ToolCall(
        call_id="t", name="Bash", arguments=Raw(msgspec.json.encode({"command": text, "path": text}))
    )


ASKED = item(1, "user", Text(text="Mend the loader."))


def recorded(*items: Item) -> None:
    source = ExtractSource(items, (), request=None, budget_tokens=2000)
    source.record(2000, lambda text: len(text) // 4 + 1)


def edited(text: str) -> None:
    reader = WorkReader()
    for path, old, new in (("a.py", text, f"{text}x"), ("a.py", f"{text}x", ""), ("a.md", "", text)):
        arguments = {"path": path, "old_string": old, "new_string": new}
        edit = ToolCall(call_id="t", name="Edit", arguments=Raw(msgspec.json.encode(arguments)))
        reader.add(item(1, "assistant", edit))
        reader.add(item(2, "tool", ToolResult(call_id="t", content="ok")))
    reader.state()


def summarised(text: str) -> None:
    summary = Message(role="user", content=(Text(text=text),), meta=Meta(type="compaction_summary"))
    items = (Item(entry_id="e1", body=summary, tokens=9), item(2, "user", Text(text="Mend the loader.")))
    source = ExtractSource(
        items, (), request=None, budget_tokens=2000, work=WorkReader().state(), earlier=items[:1]
    )
    source.record(2000, lambda text: len(text) // 4 + 1)


def redacted(pasted: str, other: str) -> None:
    said = [Message(role="user", content=(Text(text=text),)) for text in (pasted, other)]
    entries = (
        *(
            Appended(id=f"e{n}", at=0.0, message=encode_message(one), tokens=(1, "chars4"))
            for n, one in enumerate(said, 1)
        ),
        Compacted(
            id="e3",
            at=0.0,
            compaction_id="c1",
            epoch=2,
            summary=f"## Goal\n- {pasted}\n- {other}",
            summary_tokens=7,
            result=CompactionResult(compacted=True),
        ),
    )
    redact(entries, frozenset(("e1",)), Codec(decode_message, encode_message, lambda message: 1, "chars4"))


def opened(data: str) -> None:
    with suppress(CompactdError):
        read(data.encode("utf-8", "replace"))


READERS: dict[str, Callable[[str], object]] = {
    "edits": edited,
    "constraints": lambda text: limits_in(item(1, "user", Text(text=text))),
    "a title": lambda text: title_of(Message(role="user", content=(Text(text=text),))),
    "classify": lambda text: classify(FailureReport(status=400, text=text)),
    "classify JSON": lambda text: classify(
        FailureReport(status=400, text=json.dumps({"error": {"message": text}}))
    ),
    "redact it": lambda text: redacted(text, "hunter2 12"),
    "redact another": lambda text: redacted("hunter2 12", text),
    "a key in it": lambda text: blot_keys(text, (Secret("sk-a/b+0123456789"),)),
    "files seen last": lambda text: last_files(
        (item(1, "assistant", call("a.py")), item(2, "tool", ToolResult(call_id="t", content=text)))
    ),
    "a stub": lambda text: stub_text(ToolResult(call_id="t", content=text), call(text), 9, "e1"),
    "a file": opened,
    "a file's message": lambda text: opened(json.dumps({"messages": [{"role": "user", "content": text}]})),
    "a file that ends early": lambda text: opened('{"messages":[{"role":"user","content":' + text),
    "search": lambda text: search((item(1, "user", Text(text=text)),), "zzqx", 10),
    "names": atoms,
    "commands": lambda text: list(commands(text)),
    "sentences": sentences,
    "a model's summary": clean_answer,
    "an earlier summary": read_sections,
}
"""All functions that read foreign texts, with each of their patterns."""

RECORDS: dict[str, Callable[[str], object]] = {
    "the user's": lambda text: recorded(item(1, "user", Text(text=text))),
    "the model's": lambda text: recorded(ASKED, item(2, "assistant", Text(text=text))),
    "a call's": lambda text: recorded(ASKED, item(2, "assistant", call(text))),
    "a tool's": lambda text: recorded(
        ASKED, item(2, "assistant", call("ls")), item(3, "tool", ToolResult(call_id="t", content=text))
    ),
    "an earlier summary's": summarised,
}


def took_s(reader: Callable[[str], object], text: str) -> float:
    begun = process_time()
    reader(text)
    return process_time() - begun


def grows(reader: Callable[[str], object], piece: str) -> float | None:
    """Return how much longer `reader` takes for a text `TIMES` as long; None if the time is too short to
    notice."""
    short, long = (piece * (size // len(piece)) for size in (SIZE, TIMES * SIZE))
    took = took_s(reader, long)
    if took < UNNOTICED_S:
        return None
    # Measure again: the first call may have loaded or compiled something.
    return min(took, took_s(reader, long)) / min(took_s(reader, short), took_s(reader, short))


@pytest.mark.parametrize("name", READERS)
def test_no_text_takes_more_than_its_length_to_read(name: str) -> None:
    grown = {piece: grows(READERS[name], piece) for piece in PIECES}

    assert {piece: times for piece, times in grown.items() if times is not None and times > MOST} == {}


LINES = (
    lambda n: " ".join(f"w{n}x{at}" for at in range(40)),
    lambda n: "a b " * 75,
    lambda n: f"never touch part {n} of it, and always ask {n} before. " * 6,
)
"""Lines that are parted into pieces and sentences: each with names of its own, or all the same."""


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("line", LINES, ids=("names", "words", "demands"))
def test_a_record_of_one_huge_message_takes_no_more_than_its_length(
    name: str, line: Callable[[int], str]
) -> None:
    whole = "\n".join(line(number) for number in range(TIMES * 60))
    RECORDS[name](whole[: len(whole) // 60])

    short, long = (
        min(took_s(RECORDS[name], whole[: len(whole) // part]) for _ in range(2)) for part in (TIMES, 1)
    )

    assert long < UNNOTICED_S or long / short < MOST


def rollout(*lines: tuple[str, object]) -> str:
    return "".join(json.dumps({"type": kind, "payload": payload}) + "\n" for kind, payload in lines)


def said_of(role: str, text: str) -> tuple[str, object]:
    kind = "input_text" if role == "user" else "output_text"
    return "response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def called(name: str) -> tuple[str, object]:
    return "response_item", {"type": "function_call", "call_id": name, "name": "ls", "arguments": "{}"}


COUNTED = ("event_msg", {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 1}}})


def back(turns: int) -> tuple[str, object]:
    return "event_msg", {"type": "thread_rolled_back", "num_turns": turns}


def summed(number: int) -> tuple[str, object]:
    kept = [said_of("user", f"Part {number}.")[1]]
    return "compacted", {"message": "s", "replacement_history": kept}


ROLLOUTS: dict[str, Callable[[int], str]] = {
    "compactions": lambda n: rollout(*(summed(at) for at in range(n))),
    "compactions of prompts": lambda n: rollout(
        *(line for at in range(n) for line in (said_of("user", f"Part {at}."), summed(at)))
    ),
    "compactions taken back": lambda n: rollout(
        *(line for at in range(n) for line in (said_of("user", f"Part {at}."), summed(at), back(1)))
    ),
    "calls": lambda n: rollout(*(called(f"c{at}") for at in range(n))),
    "calls counted": lambda n: rollout(*(line for at in range(n) for line in (called(f"c{at}"), COUNTED))),
    "counts": lambda n: rollout(
        *(said_of("user", f"Part {at}.") for at in range(n)), *(COUNTED for _ in range(n))
    ),
    "no turn taken back": lambda n: rollout(
        *(line for at in range(n) for line in (said_of("user", f"Part {at}."), back(0)))
    ),
    "one turn taken back": lambda n: rollout(
        *(said_of("user", f"Part {at}.") for at in range(n)),
        *(line for at in range(n) for line in (said_of("user", f"Again {at}."), back(1))),
    ),
    "an answer gone on with after each rollback": lambda n: rollout(
        said_of("user", "Go on."),
        *(called(f"a{at}") for at in range(n)),
        *(line for at in range(n) for line in (said_of("user", "x"), back(1), called(f"c{at}"), COUNTED)),
    ),
}
"""Codex's rollouts by the number of what is repeated in them."""


@pytest.mark.parametrize("name", ROLLOUTS)
def test_a_rollout_of_many_small_records_takes_no_more_than_its_length(name: str) -> None:
    short, long = (ROLLOUTS[name](number) for number in (500, TIMES * 500))
    assert read(short.encode()).format == "codex"

    took = [min(took_s(opened, text) for _ in range(2)) for text in (short, long)]

    assert took[1] < UNNOTICED_S or took[1] / took[0] < MOST


def queued(operation: str, count: int, *, is_named: bool = True, at: str = "2026-01-01T01") -> list[object]:
    row = {"type": "queue-operation", "operation": operation, "timestamp": f"{at}:00:00Z"}
    return [{**row, **({"content": f"part {number}"} if is_named else {})} for number in range(count)]


def attached(count: int) -> list[object]:
    row = {"type": "attachment", "timestamp": "2026-01-01T00:00:00Z"}
    inner = {"type": "queued_command", "commandMode": "prompt"}
    return [
        {**row, "uuid": f"a{number}", "attachment": {**inner, "prompt": f"part {number}"}}
        for number in range(count)
    ]


def results(count: int) -> list[object]:
    row = {"type": "user", "timestamp": "2026-01-01T00:30:00Z"}
    content = [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]
    return [
        {**row, "uuid": f"r{number}", "message": {"role": "user", "content": content}}
        for number in range(count)
    ]


QUEUES: dict[str, Callable[[int], list[object]]] = {
    "removed from its end, long before its time": lambda n: [
        *queued("enqueue", n),
        *reversed(queued("remove", n, at="2027-01-01T00")),
        *results(n),
    ],
    "removed without content, then attached": lambda n: [
        *queued("enqueue", n),
        *queued("remove", n, is_named=False),
        *attached(n),
    ],
    "attached, then removed one by one": lambda n: [
        row
        for rows in zip(
            attached(n), queued("remove", n, is_named=False), queued("enqueue", n), results(n), strict=True
        )
        for row in rows
    ],
    "sent from its beginning": lambda n: [*queued("enqueue", n), *queued("dequeue", n, is_named=False)],
    "taken back from its end": lambda n: [*queued("enqueue", n), *reversed(queued("popAll", n))],
}
"""Inputs for Claude Code's queue of typed messages, by the number of messages."""


@pytest.mark.parametrize("name", QUEUES)
def test_a_queue_of_many_messages_takes_no_more_than_its_length(name: str) -> None:
    short, long = (
        "\n".join(json.dumps(row) for row in QUEUES[name](number)) for number in (500, TIMES * 500)
    )
    took = [min(took_s(as_claude_code, text) for _ in range(2)) for text in (short, long)]

    assert took[1] < UNNOTICED_S or took[1] / took[0] < MOST


def as_claude_code(rows: str) -> None:
    claude_code.read(rows.encode())


def action(number: int) -> dict[str, object]:
    called = {"id": f"c{number}", "function": {"name": "ls", "arguments": "{}"}}
    return {
        "kind": "ActionEvent",
        "id": f"a{number}",
        "llm_response_id": "r",
        "tool_call_id": f"c{number}",
        "tool_name": "ls",
        "tool_call": called,
        "thought": [{"type": "text", "text": "hm " * 20}],
    }


def prompt(number: int) -> dict[str, object]:
    said = {"role": "user", "content": [{"type": "text", "text": f"Part {number}."}]}
    return {"kind": "MessageEvent", "source": "user", "id": f"m{number}", "llm_message": said}


def condensation(*forgotten: int) -> dict[str, object]:
    return {"kind": "Condensation", "summary": "s", "forgotten_event_ids": [f"m{one}" for one in forgotten]}


def as_openhands(events: str) -> None:
    assert openhands.read(events.encode()).messages


def test_an_answer_of_many_actions_takes_no_more_than_its_length() -> None:
    short, long = (json.dumps([action(at) for at in range(number)]) for number in (1000, TIMES * 1000))
    took = [min(took_s(as_openhands, text) for _ in range(2)) for text in (short, long)]

    assert took[1] < UNNOTICED_S or took[1] / took[0] < MOST


def test_condensations_that_each_leave_most_of_a_long_view_take_bounded_memory_and_say_so() -> None:
    number = 4_000
    events = [prompt(at) for at in range(number)]
    events += [condensation(at) for at in reversed(range(number))]

    file = openhands.read(json.dumps(events).encode())

    assert file.compactions == number
    assert 0 < sum(len(kept) for _, kept in file.pinned) <= openhands_v1.MAX_STEPS
    assert [text for text in file.warnings if "too many condensations" in text]


PARTS: dict[str, Callable[[int], str]] = {
    "items with quotations": lambda n: "".join(f"- item {at}\n> q {at}\n" for at in range(n)),
    "fences": lambda n: "".join(f"word {at}\n```\ncode {at}\n```\n" for at in range(n)),
    "quotations": lambda n: "> a\n" * (4 * n),
    "signs of a list": lambda n: "(a) " * (20 * n),
    "signs without width": lambda n: "\u200b" * (50 * n),
    "openings of a quotation": lambda n: "«a " * (20 * n),
}
"""Texts of one user that have many parts, or look as if they had, by the number of these."""


MAX_SCANS = 15
"""Readings of a message by one compaction, each of which decides who wrote what."""


def compacted(text: str) -> None:
    """A compaction that removes a message of this text."""
    said: tuple[tuple[Role, str], ...] = (
        ("user", text),
        ("assistant", "Understood. " * 300),
        ("user", "Go on."),
    )
    items = [
        Item(entry_id=f"e{at}", body=Message(role=role, content=(Text(text=each),)), tokens=len(each) // 4)
        for at, (role, each) in enumerate(said, 1)
    ]
    inputs = inputs_of(view_of(items), request=CompactRequest(strategy="extract", keep_messages=1))
    made = plan(inputs)
    assert isinstance(made, Plan)
    drive(compact(SummaryInput(plan=made)))


def scans(text: str) -> float:
    """Return how often a compaction scans `text` for its authors: scanned characters ÷ length."""
    scanned = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal scanned
        if event == "call" and frame.f_code is spans.__code__:
            scanned += len(frame.f_locals["text"])

    sys.setprofile(count)
    try:
        compacted(text)
    finally:
        sys.setprofile(None)
    return scanned / len(text)


@pytest.mark.parametrize("name", PARTS)
def test_a_compaction_decides_who_wrote_what_once_per_reading_not_once_per_part(name: str) -> None:
    assert 1 <= scans(PARTS[name](1_000)) < MAX_SCANS


@pytest.mark.parametrize("name", PARTS)
def test_a_message_of_many_parts_is_compacted_in_time_that_grows_as_its_length(name: str) -> None:
    short, long = (PARTS[name](number) for number in (500, TIMES * 500))
    compacted(short)

    shorter, longer = (min(took_s(compacted, text) for _ in range(2)) for text in (short, long))

    assert longer < UNNOTICED_S or longer / shorter < MOST


def spent_s(spawn: Callable[..., Daemon], home: Path, text: str) -> float:
    """Processor time of a daemon and its workers, from its start to its end, that compacts one session."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = spawn(home)
    session = running.call("session/start")["session_id"]
    said = (("user", text), ("assistant", "Understood. " * 300), ("user", "Go on."))
    messages = [{"role": role, "content": each} for role, each in said]
    running.call("session/append", session_id=session, messages=messages)
    assert running.call("session/compact", session_id=session, keep_messages=1, strategy="extract")[
        "compacted"
    ]
    assert running.stop() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_daemon_compacts_a_message_of_many_parts_about_as_fast_as_one_of_as_many_plain_lines(
    spawn: Callable[..., Daemon], tmp_path: Path
) -> None:
    parts = PARTS["items with quotations"](4_000)
    plain = parts.replace("> q", "and q")

    plain_s, parts_s = (
        spent_s(spawn, tmp_path / name, text) for name, text in (("plain", plain), ("parts", parts))
    )

    assert parts_s / plain_s < TIMES
