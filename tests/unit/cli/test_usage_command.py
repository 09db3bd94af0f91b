"""`compactd usage` as users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command_line import ANSI, TERMINAL, ended, recorded, run, started
from tests.unit.cli.usage import test_codex as codex
from tests.unit.cli.usage.test_claude_code import answer, write

UTC = {"TZ": "UTC"}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a session of Claude Code, one of Codex, and one of pi."""
    home = tmp_path_factory.mktemp("home")
    write(
        home / ".claude" / "projects" / "-home-someone-ledger" / "5c5cb639-0000-4000-8000-000000000001.jsonl",
        answer(1, 2000),
        answer(2, 7000, model="nobodys-model-9"),
        answer(3, 0, model="<synthetic>"),
    )
    codex.write(
        home / ".codex" / "sessions" / "2026" / "01" / "05" / "rollout-1.jsonl",
        codex.meta("c1"),
        codex.turn("gpt-5"),
        codex.event((100_000, 60_000, 10), (100_000, 60_000, 10)),
    )
    message = {
        "role": "assistant",
        "provider": "anthropic",
        "model": "claude-opus-4-5",
        "timestamp": 1_767_582_240_000,
        "usage": {"input": 3, "output": 5, "cacheRead": 7, "cacheWrite": 11, "cost": {"total": 1.25}},
    }
    write(
        home / ".pi" / "agent" / "sessions" / "--home-someone-atlas--" / "p1.jsonl",
        {"type": "session", "id": "p1", "cwd": str(home / "atlas")},
        {"type": "message", "message": message},
    )
    return home


def test_the_table_has_a_row_for_each_day_and_says_what_the_cost_is(home: Path) -> None:
    seen = run(home, "usage", "--no-pager", env=UTC)

    assert seen.code == 0
    assert seen.lines[:7] == [
        "4 requests in 3 sessions, 2026-01-02 to 2026-01-05 (local time)",
        "",
        "day          input  output  cache write  cache read    total  cached     cost",
        "2026-01-02  40,006   9,010          200      62,000  111,216    61 %  $0.11+",
        "2026-01-05       3       5           11           7       26    33 %  $1.25*",
        "total       40,009   9,015          211      62,007  111,242    61 %  $1.36+*",
        "",
    ]
    assert "models.dev" in seen.out
    assert "the session files report $1.25" in seen.out
    assert "no price is known for 8,103 tokens of nobodys-model-9" in seen.out
    assert "cache writes are not reported by Codex CLI" in seen.out


def test_json_has_raw_numbers_and_null_for_what_is_unknown(home: Path) -> None:
    found = run(home, "usage", "--json", "--by", "agent,model", env=UTC).json
    rows = {(row["agent"], row["model"]): row for row in found["rows"]}

    assert found["by"] == ["agent", "model"]
    assert {key: (row["total_tokens"], row["cost_usd"]) for key, row in rows.items()} == {
        ("codex", "gpt-5"): (100_010, pytest.approx(0.04 * 1.25 + 0.06 * 0.125 + 10 * 10 / 1e6)),
        ("claude-code", "nobodys-model-9"): (8_103, None),
        ("claude-code", "claude-opus-4-5"): (
            3_103,
            pytest.approx((3 * 5 + 2000 * 25 + 30 * 6.25 + 70 * 10 + 1000 * 0.5) / 1e6),
        ),
        ("pi", "claude-opus-4-5"): (26, 1.25),
    }
    assert rows["codex", "gpt-5"]["cache_write_tokens"] is None
    assert rows["pi", "claude-opus-4-5"]["reported_cost_usd"] == 1.25
    assert found["total"]["total_tokens"] == sum(row["total_tokens"] for row in found["rows"])
    assert found["unpriced"] == [{"model": "nobodys-model-9", "tokens": 8103}]
    assert found["files"] == {"read": 3, "without_usage": 0}


def test_the_options_choose_rows(home: Path) -> None:
    def requests(*options: str) -> int:
        return run(home, "usage", "--json", *options, env=UTC).json["total"]["requests"]

    assert requests("--agent", "codex") == 1
    assert requests("--agent", "codex", "--agent", "pi") == 2
    assert requests("--model", "opus") == 2
    assert requests("--since", "2026-01-03") == 1
    assert requests("--until", "20260102") == 3


def test_repeated_options_are_the_same_as_commas(home: Path) -> None:
    commas = run(home, "usage", "--by", "day,project", env=UTC)
    repeated = run(home, "usage", "--by", "day", "--by", "project", env=UTC)

    assert commas.out == repeated.out
    assert "~/atlas" in commas.out


def test_days_are_local_unless_utc_is_asked_for(home: Path) -> None:
    zone = {"TZ": "America/Los_Angeles"}
    local = run(home, "usage", "--json", "--agent", "pi", env=zone).json
    utc = run(home, "usage", "--json", "--agent", "pi", "--utc", env=zone).json

    assert [row["day"] for one in (local, utc) for row in one["rows"]] == ["2026-01-04", "2026-01-05"]
    assert (local["time_zone"], utc["time_zone"]) == ("local", "UTC")


def test_in_a_narrow_terminal_numbers_are_short_and_columns_are_left_out(home: Path) -> None:
    def table(columns: int) -> list[str]:
        seen = run(home, "usage", env={**TERMINAL, **UTC, "COLUMNS": str(columns)})
        lines = [ANSI.sub("", line) for line in seen.lines]
        last = next(number for number, line in enumerate(lines) if line.startswith("total"))
        return lines[last - 4 : last + 1]

    assert table(72) == [
        "                           cache  cache",
        "day         input  output  write   read  total  cached     cost",
        "2026-01-02  40.0k   9.01k    200  62.0k   111k    61 %  $0.11+",
        "2026-01-05      3       5     11      7     26    33 %  $1.25*",
        "total       40.0k   9.02k    211  62.0k   111k    61 %  $1.36+*",
    ]
    assert table(40)[1:] == [
        "day         total  cached     cost",
        "2026-01-02   111k    61 %  $0.11+",
        "2026-01-05     26    33 %  $1.25*",
        "total        111k    61 %  $1.36+*",
    ]


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.parametrize("by", ["day", "project,model", "session,day,agent"])
def test_no_line_is_wider_than_the_terminal(home: Path, columns: int, by: str) -> None:
    seen = run(home, "usage", "--by", by, env={**TERMINAL, **UTC, "COLUMNS": str(columns)})
    lines = [ANSI.sub("", line) for line in seen.lines]

    assert seen.code == 0
    assert max(len(line) for line in lines) <= min(columns, 100)
    assert any(line.startswith("total") for line in lines)
    assert any("111k" in line or "111,242" in line for line in lines)


def test_named_files_are_read_instead_of_those_of_the_machine(home: Path) -> None:
    path = recorded("cline-session.json")
    found = run(home, "usage", str(path), str(path), "--by", "agent", "--json").json

    assert [row["agent"] for row in found["rows"]] == ["cline"]
    assert found["total"]["requests"] == sum(
        "metrics" in message for message in json.loads(path.read_text())["messages"]
    )


def test_processes_that_run_at_the_same_time_leave_a_good_cache(home: Path) -> None:
    alone = run(home, "usage", "--json", env=UTC).json
    cache = home / "data" / "cache" / "usage.msgpack"
    whole = cache.read_bytes()
    cache.unlink()
    together = [ended(process) for process in [started(home, ("usage", "--json"), UTC) for _ in range(4)]]

    assert [one.json["total"] for one in together] == [alone["total"]] * 4
    assert len(cache.read_bytes()) == len(whole)
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def test_without_sessions_the_command_says_so_with_a_code_of_its_own(tmp_path: Path) -> None:
    text, data = run(tmp_path, "usage"), run(tmp_path, "usage", "--json")

    assert (text.code, data.code) == (3, 3)
    assert "no session files of claude-code, codex, gemini-cli, pi" in text.out
    assert (data.json["rows"], data.json["total"]["requests"]) == ([], 0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--by", "week"), "'week' is not one of day, month, project, agent, model, session"),
        (("--since", "soon"), "write a date"),
        (("--since", "2026-02-01", "--until", "2026-01-01"), "--since 2026-02-01 is after"),
        (("missing.jsonl",), "there is no such file"),
        ((".",), "it is a folder"),
        (("text.txt",), "it is no session file of"),
        (("empty.jsonl",), "it is no session file of"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    (tmp_path / "text.txt").write_text("Dear diary")
    (tmp_path / "empty.jsonl").write_text("")
    seen = run(tmp_path, "usage", *arguments)

    assert (seen.code, seen.out) == (1 if "no session file" in told else 2, "")
    assert told in seen.err


def test_what_a_file_says_cannot_command_the_terminal(tmp_path: Path) -> None:
    bad = "x\x1b[2J\u202ey\r\n"
    write(
        tmp_path / ".claude" / "projects" / "-x" / "one.jsonl",
        answer(1, 2, model=f"m{bad}", cwd=f"/home/{bad}", sessionId=bad),
    )
    seen = run(tmp_path, "usage", "--by", "project,model,session", env={**TERMINAL, "COLUMNS": "120"})
    data = run(tmp_path, "usage", "--by", "project,model,session", "--json")

    shown = ANSI.sub("", seen.out) + data.out
    assert {sign for sign in "\x1b\u202e\r" if sign in shown} == set()
    assert data.json["rows"][0]["session"] == bad


def test_a_cost_below_a_cent_is_not_shown_as_nothing(tmp_path: Path) -> None:
    write(tmp_path / ".claude" / "projects" / "-x" / "one.jsonl", answer(1, 2))

    assert "<$0.01" in run(tmp_path, "usage").out
