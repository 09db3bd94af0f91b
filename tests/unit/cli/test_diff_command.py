"""`compactd diff`: the context before and after a compaction."""

from __future__ import annotations

import re

import pytest

from compactd.client import Client
from tests.support.command_line import ANSI, TERMINAL, run, run_each
from tests.support.session_files import filler, openai


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def file(home):
    return openai(home / "plain.json", 30, words=180)


@pytest.fixture(scope="module")
def tried(home, file):
    options = ("--keep-messages", "8")
    return run_each(home, ("diff", file, *options), ("diff", file, *options, "--json"))


def stored(home):
    """Two sessions: one whose compaction kept a pinned message, and one with a result that was pruned."""
    env = {"COMPACTD_HOME": str(home / "data"), "PATH": "/usr/bin:/bin"}
    call = {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a.py"}}
    result = {"type": "tool_result", "call_id": "c1", "content": filler(20_000)}
    messages = [
        {"role": "user", "content": "Never touch bank.toml."},
        {"role": "assistant", "content": filler(3_000)},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": filler(3_000)},
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [result]},
        {"role": "assistant", "content": "It is read."},
        {"role": "user", "content": "And now?"},
        {"role": "assistant", "content": "Done."},
    ]
    with Client(env=env) as client:
        client.call("session/start", {"session_id": "mine", "context_window": 64_000})
        params = {"session_id": "mine", "messages": messages}
        entries = client.call("session/append", params)["entry_ids"]
        client.call("session/pin", {"session_id": "mine", "entry_ids": entries[:1]})
        client.call("session/compact", {"session_id": "mine", "keep_messages": 6})
        client.call("session/append", {"session_id": "mine", "messages": messages[2:4]})
        settings = {"prune_minimum": 10, "prune_protect": 10}
        client.call(
            "session/start", {"session_id": "short", "context_window": 64_000, "compaction": settings}
        )
        client.call("session/append", {"session_id": "short", "messages": [*messages, *messages[2:4] * 3]})
        client.call("session/prune", {"session_id": "short"})


def test_every_message_of_before_has_one_fate_and_the_tokens_add_up(tried) -> None:
    _, data = tried

    seen = data.json
    assert (data.code, seen["compacted"], seen["tried"]) == (0, True, True)
    assert seen["before"]["messages"] == len(seen["messages"]) == 120
    assert sum(one["messages"] for one in seen["fates"].values()) == 120
    beside = seen["system_and_tools"]
    assert beside == 3
    before = sum(one["tokens_before"] for one in seen["fates"].values())
    assert before + beside == seen["before"]["tokens"]
    after = sum(one["tokens_after"] for one in seen["fates"].values()) + seen["summary_tokens"]
    assert after + beside == seen["after"]["tokens"]
    kept = [one["fate"] for one in seen["messages"][-8:]]
    assert kept == ["kept"] * 8
    assert "## Goal" in seen["summary"]


def test_a_pipe_gets_a_message_a_line_and_the_summary_where_it_stands(tried, file) -> None:
    text, data = tried

    assert (text.code, text.err) == (0, "")
    assert not set(text.out) & set("│─\x1b")
    rows = text.lines[text.lines.index("", 3) :]
    shown = "".join(line[0] for line in rows if line[:2] in ("- ", "= ", "* ", "~ ", "+ "))
    assert re.fullmatch(r"[-*]{112}\+={8}", shown)
    assert f"Tokens: {data.json['before']['tokens']:,} → {data.json['after']['tokens']:,}" in text.out
    assert re.search(r"^- user +\d+  Step 1: check ledger/part1.py", text.out, re.M)


def test_a_terminal_of_a_hundred_columns_has_two_and_a_narrower_one_a_list(home, file) -> None:
    options = ("diff", file, "--keep-messages", "8", "--no-pager")

    wide = run(home, *options, env={**TERMINAL, "COLUMNS": "120"})
    narrow = run(home, *options, env={**TERMINAL, "COLUMNS": "80"})
    tiny = run(home, *options, env={**TERMINAL, "COLUMNS": "20", "NO_COLOR": "1"})

    lines = [ANSI.sub("", line) for line in wide.lines]
    assert max(map(len, lines)) <= 120
    both = [line.split(" │ ") for line in lines if " │ " in line]
    assert [len(parts) for parts in both] == [2] * len(both)
    assert both[0][0].startswith("before  ")
    assert both[0][1].startswith("after  ")
    assert both[2][1].startswith("+ summary")
    for left, right in both[-8:]:
        assert left.strip() == right.strip()
        assert left.startswith("= ")
    assert " │ " not in narrow.out
    assert max(len(ANSI.sub("", line)) for line in narrow.lines) <= 80
    assert (tiny.code, "\x1b" in tiny.out) == (0, False)


def test_all_of_before_can_stand_above_all_of_after(home, file) -> None:
    seen = run(home, "diff", file, "--keep-messages", "8", "--before-after")

    before, after = seen.lines.index("before"), seen.lines.index("after")
    assert sum(line[:2] in ("- ", "= ", "* ") for line in seen.lines[before:after]) == 120
    assert seen.lines[after + 1].startswith("+ summary")


def test_of_a_stored_session_it_is_the_last_compaction_as_it_was(home) -> None:
    stored(home)

    text, data, pruned, missing = run_each(
        home,
        ("diff", "mine"),
        ("diff", "mine", "--json"),
        ("diff", "short", "--json"),
        ("diff", "nobody-knows"),
    )

    seen = data.json
    assert (text.code, seen["tried"]) == (0, False)
    assert text.lines[0].endswith(": the last compaction did this")
    # What came after it is no part of the change.
    assert (seen["before"]["messages"], len(seen["messages"])) == (10, 10)
    fates = [one["fate"] for one in seen["messages"]]
    assert fates[0] == "pinned"
    assert fates[1:4] == ["summarised"] * 3
    assert set(fates[4:]) == {"kept"}
    only = pruned.json["fates"]["pruned"]
    assert (only["messages"], pruned.json["summary"], pruned.json["fates"]["summarised"]["messages"]) == (
        1,
        "",
        0,
    )
    assert only["tokens_before"] > 10 * only["tokens_after"] > 0
    assert missing.code == 2
    assert missing.err.startswith("there is no file 'nobody-knows', and no stored session with this id.\n")


def test_what_needs_no_compaction_says_so_and_a_file_is_never_changed(home) -> None:
    small = openai(home / "small.json", 2)
    before = small.read_bytes()

    seen, both = run_each(home, ("diff", small), ("diff", small, "--target", "8k", "--keep-messages", "2"))

    assert (seen.code, both.code) == (3, 2)
    assert seen.out.startswith("No compaction needed: ")
    assert "cannot be combined" in both.err
    assert small.read_bytes() == before
