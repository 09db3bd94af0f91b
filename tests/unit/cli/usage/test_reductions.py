"""What `compactd usage` says about reduced tool outputs, from real journals."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from compactd.cli.usage.reductions import read_reductions, sum_up
from compactd.cli.usage.totals import Filters
from compactd.storage.paths import cache_folder
from tests.support.client import Daemon
from tests.support.command_line import Ended, environment, run
from tests.support.outputs_of_tools import PIP, PIP_COMMAND
from tests.unit.cli.audit.transcripts import answer, lines, said


def reduce(home: Path, session_id: str, count: int = 1, *, observe: bool = False, tool: str = "bash") -> None:
    """Reduce outputs of different calls in a stored session."""
    with Daemon(home / "data") as daemon:
        daemon.call("session/start", session_id=session_id)
        for number in range(count):
            daemon.call(
                "session/reduce",
                session_id=session_id,
                name=tool,
                arguments={"command": PIP_COMMAND},
                content=f"{number}\n{PIP}",
                compare=False,
                observe=observe,
            )


def tool_lines(seen: Ended) -> list[str]:
    return [line for line in seen.lines if "outputs, " in line or "output, " in line]


def test_reduced_and_observed_outputs_are_shown_apart(tmp_path: Path) -> None:
    reduce(tmp_path, "claude-code:one", 2)
    reduce(tmp_path, "pi:two", 3, observe=True, tool="shell")

    seen = run(tmp_path, "usage")
    found = run(tmp_path, "usage", "--json").json["reductions"]

    first, second = tool_lines(seen)
    assert first.startswith("tool outputs reduced before they entered a context: 2 outputs, ")
    assert second.startswith("tool outputs only observed, not reduced: 3 outputs, ")
    assert (found["count"], found["observed"]["count"]) == (2, 3)
    assert found["tokens_after"] < found["tokens_before"] // 10
    assert {name: one["count"] for name, one in found["by_tool"].items()} == {"bash": 2, "shell": 3}
    assert max(one["count"] for one in found["by_rule"].values()) == 5


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--agent", "pi"), 3),
        (("--agent", "codex"), 0),
        (("--agent", "pi", "--agent", "claude-code"), 5),
        (("--since", "1d"), 5),
        (("--until", "2020-01-01"), 0),
    ],
)
def test_agents_and_days_are_filtered(tmp_path: Path, options: tuple[str, ...], count: int) -> None:
    reduce(tmp_path, "claude-code:one", 2)
    reduce(tmp_path, "pi:two", 3)

    assert run(tmp_path, "usage", "--json", *options).json["reductions"]["count"] == count


def test_days_are_those_of_the_time_zone(tmp_path: Path) -> None:
    reduce(tmp_path, "pi:one")
    (stored,) = read_reductions(environment(tmp_path))
    day = datetime.fromtimestamp(stored.outputs[0].at, UTC).date()

    counts = [
        sum_up([stored], Filters(since=str(first), until=str(last), zone=UTC)).done.count
        for first, last in ((day, day), (day + timedelta(1), day + timedelta(1)), (day - timedelta(9), day))
    ]

    assert counts == [1, 0, 1]


def test_a_journal_that_grows_is_read_on_and_one_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    env = environment(tmp_path)
    reduce(tmp_path, "pi:one", 2)
    first = sum_up(read_reductions(env)).done.count
    reduce(tmp_path, "pi:one", 1, tool="late")
    reduce(tmp_path, "pi:two", 1)
    second = sum_up(read_reductions(env))
    with Daemon(tmp_path / "data") as daemon:
        daemon.call("session/delete", session_id="pi:one")
    third = sum_up(read_reductions(env)).done.count

    assert (first, second.done.count, second.by_tool["late"].count, third) == (2, 4, 1, 1)


@pytest.mark.parametrize("damage", [b"", b"compactd reductions 1\n\xff", b"compactd reductions 0\n\x80"])
def test_a_damaged_cache_is_read_anew(tmp_path: Path, damage: bytes) -> None:
    env = environment(tmp_path)
    reduce(tmp_path, "pi:one", 2)
    read_reductions(env)
    cache = cache_folder(env) / "reductions.msgpack"
    assert cache.read_bytes()
    cache.write_bytes(damage)

    assert sum_up(read_reductions(env)).done.count == 2


def test_text_that_looks_like_a_record_is_not_counted(tmp_path: Path) -> None:
    forged = '{"seq":9,"type":"reduced","at":1.0,"name":"x","tokens":[9,"a"],"tokens_shown":1,"rules":[]}'
    with Daemon(tmp_path / "data") as daemon:
        daemon.call("session/start", session_id="pi:one")
        # A client's JSON is stored as it was sent.
        meta = f'"meta":{{"kind":"x","y":{forged}}}'
        params = f'{{"session_id":"pi:one","messages":[{{"role":"user","content":"Hi.",{meta}}}]}}'
        daemon.call_raw("session/append", params.encode())
    (journal,) = (tmp_path / "data" / "sessions").glob("*.jsonl")
    assert forged in journal.read_text()

    assert read_reductions(environment(tmp_path)) == []


def test_files_that_are_named_have_no_reductions(tmp_path: Path) -> None:
    reduce(tmp_path, "pi:one")
    (tmp_path / "file.jsonl").write_bytes(lines([said("u1"), answer(1, parent="u1")]))

    assert run(tmp_path, "usage", tmp_path / "file.jsonl", "--json").json["reductions"] is None


def test_a_shells_outputs_are_counted(tmp_path: Path) -> None:
    run(tmp_path, "reduce", "--observe", "--", sys.executable, "-c", f"print({PIP!r})")

    assert tool_lines(run(tmp_path, "usage"))[0].startswith(
        "tool outputs only observed, not reduced: 1 output, "
    )


def test_sums_of_reductions_alone_are_an_answer(tmp_path: Path) -> None:
    empty = run(tmp_path, "usage")
    reduce(tmp_path, "pi:one")

    seen = run(tmp_path, "usage")

    assert (empty.code, seen.code, run(tmp_path, "usage", "--json").code) == (3, 0, 0)
    assert len(tool_lines(seen)) == 1


def test_a_session_that_keeps_only_outputs_is_listed_with_their_number(tmp_path: Path) -> None:
    reduce(tmp_path, "outputs:aaaaaa", 2)
    reduce(tmp_path, "outputs:bbbbbb", 1, observe=True)
    reduce(tmp_path, "pi:one", 3)

    listed = run(tmp_path, "sessions", "--all").out
    shown = run(tmp_path, "sessions", "show", "outputs:aaaaaa")
    deleted = run(tmp_path, "sessions", "delete", "outputs:aaaaaa", "--yes")

    rows = {line.split("  ")[0]: line.split("  ")[2] for line in listed.splitlines()}
    assert {name: text.partition(",")[0] for name, text in rows.items()} == {
        "outputs:aaaaaa": "2 outputs",
        "outputs:bbbbbb": "1 observed output",
        "pi:one": "0 messages",
    }
    assert shown.lines[0] == "this session has 2 outputs and no messages"
    assert deleted.lines == ["deleted outputs:aaaaaa (2 outputs)"]
