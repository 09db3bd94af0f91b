"""`compactd audit` as users run it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.command_line import ANSI, COMPACTD, TERMINAL, environment, run
from tests.unit.cli.audit.transcripts import Json, answer, compacted, lines, said
from tests.unit.cli.test_every_command import is_asleep
from tests.unit.cli.usage.test_other_agents import gemini_file

UTC = {"TZ": "UTC"}
RULE = "Never touch legacy_index.py."
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
FOLDER = Path(".claude", "projects", "-home-someone-ledger")


def records() -> list[Json]:
    """A session with a rebuild of each visible kind, and a compaction that loses a rule."""
    return [
        said("u1", f"Balance the ledger. {RULE}", at=0),
        answer(1, at=10, write=50_000, parent="u1"),
        answer(2, at=400, read=0, write=52_000),
        answer(3, at=410, read=10_000, write=44_000),
        *compacted("c1", "The ledger is to be balanced.", at=420),
        answer(4, at=430, read=10_000, write=9_000),
        answer(5, at=440, read=19_000, write=1_000),
        answer(6, at=450, read=0, write=20_000, model="claude-sonnet-4-5"),
    ]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / FOLDER / "5c5cb639-0000-4000-8000-000000000001.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(lines(records()))
    return path


def test_the_bill_comes_first_then_the_rebuilds_and_what_was_lost(tmp_path: Path, session: Path) -> None:
    seen = run(tmp_path, "audit", session, env=UTC)

    assert seen.code == 0, seen.err
    assert seen.lines[:9] == [
        "6 requests, 2026-01-02 00:00 to 2026-01-02 00:07, claude-opus-4-5, claude-sonnet-4-5",
        "",
        "                    tokens    cost",
        "input                   18  <$0.01   0 %",
        "cache read          39,000   $0.02   2 %",
        "cache write 5 min  176,000   $1.05  98 %",
        "output                 120  <$0.01   0 %",
        "total              215,138   $1.07",
        "18 % of the input came from the cache.",
    ]
    told = "4 rebuilds of the cache, together 121,003 tokens, 69 % of all tokens written to the cache"
    assert told in seen.lines
    assert "2026-01-02 00:06  6 min  50,000       $0.29  expired" in seen.lines
    assert "2026-01-02 00:07   10 s  20,000       $0.07  other model" in seen.lines
    assert "- 2026-01-02 00:07  auto 90,000 → 19,003 tokens" in seen.lines
    assert f"    constraint: {RULE}" in seen.lines
    assert any(line.startswith("with compactd's policy: about $") for line in seen.lines)
    assert "what the file does not say" in seen.lines


def test_json_has_the_same_numbers(tmp_path: Path, session: Path) -> None:
    found = run(tmp_path, "audit", session, "--json", env=UTC).json

    assert (found["agent"], found["requests"], found["tokens"]["cache_write_5m"]) == (
        "claude-code",
        6,
        176_000,
    )
    assert sum(found["costs_usd"][kind] for kind in found["costs_usd"] if kind != "total") == pytest.approx(
        found["costs_usd"]["total"]
    )
    assert [one["cause"] for one in found["rebuilds"]] == ["expired", "unknown", "compaction", "model"]
    assert {one["cause"]: one["tokens"] for one in found["by_cause"]} == {
        "expired": 50_000,
        "unknown": 42_000,
        "compaction": 9_003,
        "model": 20_000,
    }
    assert found["compactions"][0]["lost"]["constraints"] == [RULE]
    assert found["policy"]["estimate_usd"] > 0


def test_the_sums_are_those_of_usage(tmp_path: Path, session: Path) -> None:
    audit = run(tmp_path, "audit", session, "--json").json
    usage = run(tmp_path, "usage", session, "--json").json["total"]

    assert audit["requests"] == usage["requests"]
    assert audit["tokens"]["total"] == usage["total_tokens"]
    assert audit["costs_usd"]["total"] == usage["cost_usd"]
    assert audit["cached_share"] == usage["cached_share"]


def test_all_counts_a_request_of_two_files_once_and_agrees_with_usage(tmp_path: Path, session: Path) -> None:
    fork = [{**one, "forkedFrom": {"sessionId": "s"}, "sessionId": "t"} for one in records()[:3]]
    session.with_name("t.jsonl").write_bytes(
        lines([*fork, answer(9, at=420, read=52_000, write=1_000, sessionId="t")])
    )
    gemini_file(tmp_path, {"id": "u", "type": "user", "content": "Hi"})

    audit = run(tmp_path, "audit", "--all", "--json").json
    usage = run(tmp_path, "usage", "--json").json["total"]
    text = run(tmp_path, "audit", "--all", env=UTC)

    assert audit["total"]["requests"] == usage["requests"] == 7
    assert audit["total"]["tokens"] == usage["total_tokens"]
    assert audit["total"]["cost_usd"] == pytest.approx(usage["cost_usd"])
    # The copy of an expired cache is not counted again; the request after the copies reads what they wrote.
    assert audit["total"]["rebuilds"] == 4
    assert len(audit["sessions"]) == 2
    assert text.lines[0].startswith("7 requests in 2 sessions for $1.")
    assert "`compactd audit ID` shows one of them in full" in text.lines
    assert (audit["lost"]["compactions"], audit["lost"]["constraints"]) == (1, 1)
    assert audit["policy"]["requests"] == 6
    assert "what the files do not say" in text.lines
    (lost,) = [line for line in text.lines if line.startswith("1 compaction: ")]
    assert lost.startswith("1 compaction: the context no longer has the words of 1 of 1 constraint")


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_tables_fit_into_a_terminal(tmp_path: Path, session: Path, columns: int) -> None:
    env = {**TERMINAL, **UTC, "COLUMNS": str(columns)}

    for arguments in ((session,), ("--all",)):
        seen = run(tmp_path, "audit", *arguments, env=env)
        plain = ANSI.sub("", seen.out).splitlines()
        assert all(len(line) <= columns for line in plain)
        # A row that was wrapped would leave a cause alone in its line.
        assert not {"expired", "unknown", "compaction"} & set(plain)


@pytest.mark.parametrize(
    "arguments", [("--all", "x.jsonl"), ("--all", "--pick"), ("--all", "--html", "x.html")]
)
def test_all_is_about_no_single_file(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    seen = run(tmp_path, "audit", *arguments)

    assert seen.code == 2
    assert "--all cannot be combined" in seen.err


def test_the_beginning_of_an_id_names_a_session(tmp_path: Path, session: Path) -> None:
    by_path = run(tmp_path, "audit", session, "--json")
    by_id = run(tmp_path, "audit", "5c5cb639", "--json")

    assert by_id.code == 0, by_id.err
    assert by_id.json == by_path.json

    session.with_name("5c5cb639-1.jsonl").write_bytes(session.read_bytes())
    several = run(tmp_path, "audit", "5c5cb639")
    assert several.code == 1
    assert "5c5cb639 is the beginning of 2 sessions." in several.err
    assert "5c5cb639-1.jsonl" in several.err
    assert "no such file" in run(tmp_path, "audit", "0000aaaa").err


def test_without_any_session_all_does_not_ask_for_a_file(tmp_path: Path) -> None:
    assert "Name a FILE" not in run(tmp_path, "audit", "--all").err
    assert "Name a FILE" in run(tmp_path, "audit").err


def test_an_output_that_is_too_low_is_marked(tmp_path: Path) -> None:
    early = [answer(number, at=number, write=9_000, out=1) for number in range(3)]
    path = tmp_path / "early.jsonl"
    path.write_bytes(lines(early))

    assert any(line.startswith("output (too low)") for line in run(tmp_path, "audit", path).lines)
    assert run(tmp_path, "audit", path, "--json").json["output_is_too_low"]


def test_an_empty_file_and_an_empty_name_are_told(tmp_path: Path, session: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"\n")

    assert "it is empty" in run(tmp_path, "audit", empty).err
    unnamed = run(tmp_path, "audit", session, "--html", "")
    assert (unnamed.code, "the name of the file is empty" in unnamed.err) == (2, True)


def test_a_file_without_usage_says_so(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(
        lines([said("u1", sessionId="s"), {"type": "summary", "summary": "x", "leafUuid": "u1"}])
    )

    text, data = run(tmp_path, "audit", path), run(tmp_path, "audit", path, "--json")

    assert (text.code, data.code) == (3, 3)
    assert "reports no usage, so its cost is not known" in text.out
    assert data.json["requests"] == 0


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "onerror")]


def test_the_page_loads_nothing_and_text_of_the_session_is_no_markup(tmp_path: Path) -> None:
    source = tmp_path / f"{'x' * 3}<b>.jsonl"
    hostile = [{**records()[0], "message": {"role": "user", "content": f"Never use {HOSTILE} here."}}]
    source.write_bytes(lines([*hostile, *records()[1:]]))
    target = tmp_path / "audit.html"

    seen = run(tmp_path, "audit", source, "--html", target, env=UTC)

    assert seen.code == 0, seen.err
    assert f"wrote {target}: a page, for any browser" in seen.lines
    text = target.read_text()
    page = Elements()
    page.feed(text)
    assert page.links == []
    assert not {"script", "img", "b"} & set(page.tags)
    assert page.tags.count("circle") == 4 + 1
    assert "default-src &#x27;none&#x27;" in text or "default-src 'none'" in text
    assert "Never use &lt;/script&gt;" in text
    assert len(re.findall("<title>request ", text)) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="/proc shows how far a process is")
def test_ctrl_c_ends_it_without_a_traceback(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMPACTD, "audit", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path, {}),
        cwd=tmp_path,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while not all(is_asleep(process.pid) for _ in range(3)):
        assert time.monotonic() < until
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in out + err
