"""The state of the work in `compactd inspect FILE`: what is shown of it, and that the wire says the same."""

from __future__ import annotations

import re

import pytest

from compactd.cli.framework.page import Page
from compactd.cli.inspect.work import MAX_TASKS, WorkRow, show_work, work_rows
from compactd.client import Client
from compactd.core.work.checks import GONE_ON
from compactd.protocol.work import (
    CurrentStep,
    FailedAttempt,
    FileChange,
    OpenError,
    PlanTask,
    StatedConstraint,
    TaskStatus,
    Work,
    WorkCheck,
    WorkDecision,
)
from tests.support import session_files as files
from tests.support.command_line import ANSI, TERMINAL, environment, run, run_each
from tests.support.session_files import answered, asked, claude_code, got, reported, text, used

TODO = [
    {"content": "Find the loop", "status": "completed", "activeForm": "Finding the loop"},
    {"content": "Mend the loop", "status": "in_progress", "activeForm": "Mending the loop"},
    {"content": "Write a test for the empty file", "status": "pending", "activeForm": "Writing a test"},
]


def agent_at_work() -> list[files.Json]:
    """An agent edits, tests, fails, and is not done; its first messages were compacted away."""
    path = "/home/someone/ledger/loop.py"
    return [
        asked("Mend the loop in the ledger. Never touch bank.toml."),
        answered(1, used("t1", "TodoWrite", todos=TODO)),
        got("t1", "Todos have been modified successfully"),
        answered(2, text("Using a queue instead of recursion, because the stack overflows.")),
        answered(3, used("t2", "Edit", file_path=path, old_string="a", new_string="b")),
        got("t2", "The file has been updated"),
        answered(4, used("t3", "Bash", command="git add -A && git commit -m 'Mend the loop'")),
        got("t3", "[main 1a2b3c4] Mend the loop\n 1 file changed"),
        asked("This session is being continued.", isCompactSummary=True),
        asked("Now test it."),
        answered(5, used("t4", "Edit", file_path="/elsewhere/test_loop.py", old_string="a", new_string="b")),
        got("t4", "The file has been updated"),
        answered(6, used("t5", "Bash", command="cd /home/someone/ledger && pytest -q")),
        got("t5", "loop.py:7: KeyError: 'row'\n1 failed", is_error=True),
        answered(7, text("The row is missing. Let me look at the fixture."), usage=reported(9_000)),
    ]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def file(home):
    return claude_code(home / "work.jsonl", agent_at_work())


@pytest.fixture(scope="module")
def printed(home, file):
    return run_each(home, ("inspect", file), ("inspect", file, "--json"))


def part(lines: list[str]) -> list[str]:
    """Return the lines of the part about the work."""
    start = next(n for n, line in enumerate(lines) if line.startswith("work, "))
    return lines[start : lines.index("", start)]


def test_every_kind_is_told_with_its_message_and_without_the_documents_help(printed) -> None:
    shown, _ = printed

    assert (shown.code, shown.err) == (0, "")
    assert part(shown.lines) == [
        "work, as the messages show it; [e5] is message 5",
        "goal         Mend the loop in the ledger. Never touch bank.toml.",
        "request      Now test it.",
        "constraints  Never touch bank.toml. [e1]",
        "plan         1 of 3 tasks done",
        "             done         Find the loop [e2]",
        "             in progress  Mend the loop [e2]",
        "             open         Write a test for the empty file [e2]",
        "files        loop.py   1 edit, committed, unchecked [e6]",
        "             /elsewhere/test_loop.py   1 edit, uncommitted, unchecked [e12]",
        "checks       tests failed: cd /home/someone/ledger && pytest -q [e14]",
        "open errors  loop.py:7: KeyError: 'row'; 1 failed (cd /home/someone/ledger && pytest -q) [e14]",
        "decisions    Using a queue instead of recursion, because the stack overflows. [e4]",
        "             Committed 1a2b3c4: Mend the loop [e8]",
        "now          Let me look at the fixture. [e15]",
    ]


def wire_work(home, file) -> dict[str, object]:
    """Return what `agent/state` says of the imported file."""
    with Client(env=environment(home / "own")) as client:
        session = client.call("session/import", {"path": str(file)})["session_id"]
        return client.call("agent/state", {"session_id": session, "work": True})["work"]


def test_the_json_is_what_the_wire_says_of_the_imported_file(home, file, printed) -> None:
    wire = wire_work(home, file)

    assert wire["changes"]
    assert printed[1].json["work"] == wire


def test_a_summary_in_the_file_is_no_message_of_the_work(home) -> None:
    failed = [
        asked("Copy it."),
        answered(1, used("t1", "Bash", command="cp a b")),
        got("t1", "cp: no space left on device", is_error=True),
    ]
    # So many messages later, the failure is still an open error; one more, and it is not.
    later = [answered(n, text(f"I wait, {n}.")) for n in range(2, 2 + GONE_ON)]
    summary = asked("This session is being continued.", isCompactSummary=True)
    file = claude_code(home / "summary.jsonl", [*failed, summary, *later])

    work = run(home, "inspect", file, "--json").json["work"]

    assert [one["entry_id"] for one in work["open_errors"]] == ["e3"]
    assert work == wire_work(home, file)


def test_a_journal_of_ours_names_its_own_entries(home) -> None:
    call = {"type": "tool_call", "call_id": "c", "name": "Edit", "arguments": {"file_path": "a.py"}}
    more = [
        {"role": "assistant", "content": [call]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "content": "updated"}]},
    ]
    with Client(env=environment(home / "journal")) as client:
        client.call("session/start", {"session_id": "mine", "compaction": {"strategy": "extract"}})
        client.call(
            "session/append", {"session_id": "mine", "messages": files.turns(8, 300), "format": "openai"}
        )
        assert client.call("session/compact", {"session_id": "mine", "keep_messages": 2})["compacted"]
        client.call("session/append", {"session_id": "mine", "messages": more})
        wire = client.call("agent/state", {"session_id": "mine", "work": True})["work"]
    (journal,) = (home / "journal" / "data" / "sessions").glob("*.jsonl")

    shown, data = run_each(home, ("inspect", journal), ("inspect", journal, "--json"))

    # 32 messages and the compaction came before.
    assert [change["last_entry_id"] for change in wire["changes"]] == ["e35"]
    assert data.json["work"] == wire
    assert "work, as the messages show it; [e5] is entry e5 of the session" in shown.lines
    assert "files        a.py   1 edit, uncommitted, unchecked [e35]" in shown.lines


def test_a_terminal_gets_one_line_each_with_its_message_and_only_the_open_error_has_a_colour(home) -> None:
    records = [
        asked("Mend the loop. " * 50),
        answered(
            1, used("t1", "Edit", file_path="/" + "far/" * 40 + "loop.py", old_string="a", new_string="b")
        ),
        got("t1", "updated"),
        answered(2, used("t2", "Bash", command="pytest -q " + "tests/unit/a_long_name.py " * 9)),
        got("t2", "loop.py:7: KeyError: 'row'\n1 failed in 0.10s", is_error=True),
    ]

    seen = run(home, "inspect", claude_code(home / "wide.jsonl", records), env=TERMINAL)

    lines = part([ANSI.sub("", line) for line in seen.lines])
    assert max(map(len, lines)) <= 80
    assert [line[:13].strip() for line in lines[1:]][:4] == ["goal", "files", "checks", "open errors"]
    _, goal, changed, check, error, *_ = lines
    assert goal.endswith("…")
    assert re.search(r"…\S*loop\.py   1 edit, uncommitted, unchecked \[e3\]$", changed)
    assert re.search(r"tests failed: pytest -q .*\[e5\]$", check)
    assert re.search(r"KeyError: 'row'; 1 failed in 0\.10s \(pytest.*… \[e5\]$", error)
    coloured = [ANSI.sub("", line)[:11] for line in seen.lines if line.startswith("\x1b[31m")]
    assert coloured[0] == "open errors"


def test_what_others_wrote_is_plain_text(home) -> None:
    evil = "\x1b]0;owned\x07\x1b[31m[bold]red[/bold]\u202etxt"
    records = [
        asked("Look at\n\ntwo lines."),
        answered(1, used("t1", "Edit", file_path=f"/a/{evil}.py", old_string="a", new_string="b")),
        got("t1", "updated"),
        answered(2, used("t2", "Bash", command=f"pytest {evil}")),
        got("t2", f"E   KeyError: {evil}\n1 failed in 0.10s", is_error=True),
    ]
    file = claude_code(home / "evil.jsonl", records)

    pipe, terminal = run(home, "inspect", file), run(home, "inspect", file, env=TERMINAL)

    assert not set(pipe.out) & set("\x1b\x07\u202e")
    assert "goal         Look at two lines." in pipe.lines
    assert "checks       tests failed: pytest ]0;owned[31m[bold]red[/bold]txt [e5]" in pipe.lines
    assert "\x1b[31m[bold]" not in terminal.out
    assert not set(ANSI.sub("", terminal.out)) & set("\x1b\x07\u202e")


def test_a_session_without_work_has_no_such_part(home) -> None:
    file = claude_code(
        home / "none.jsonl", [answered(1, used("t1", "Read", file_path="a.py")), got("t1", "x = 1")]
    )

    shown, data = run_each(home, ("inspect", file), ("inspect", file, "--json"))

    assert not [line for line in shown.lines if line.startswith(("work", "goal", "plan", "files"))]
    assert data.json["work"]["goal"] is None


# --- the rows -------------------------------------------------------------------------------------------


def task(text: str, status: TaskStatus) -> PlanTask:
    return PlanTask(text=text, status=status, entry_id="e1")


def texts(work: Work) -> list[tuple[str, str]]:
    return [(row.label, row.lead + row.text) for row in work_rows(work)]


def test_a_text_of_several_lines_is_one_line(capsys) -> None:
    work = Work(failed_attempts=(FailedAttempt(text="one\n\ttwo\r\n  three", entry_id="e1"),))

    show_work(Page(), work, format="compactd", working_dir=None)

    assert capsys.readouterr().out.splitlines()[1:] == ["failed       one two three [e1]", ""]


def test_nothing_known_is_no_row() -> None:
    assert work_rows(Work()) == []


def test_a_request_that_is_the_goal_is_told_once() -> None:
    assert texts(Work(goal="Do it.", request="Do it.")) == [("goal", "Do it.")]


def test_of_many_the_newest_are_shown_and_all_are_counted() -> None:
    five = range(1, 6)
    work = Work(
        constraints=tuple(StatedConstraint(text=f"rule {n}", entry_id=f"e{n}") for n in five),
        failed_attempts=tuple(FailedAttempt(text=f"try {n}", entry_id=f"e{n}") for n in five),
        decisions=tuple(WorkDecision(text=f"choice {n}", entry_id=f"e{n}") for n in five),
    )

    assert texts(work) == [
        ("constraints", "5 constraints, the last 3:"),
        *(("", f"rule {n}") for n in (3, 4, 5)),
        ("failed", "5 failed attempts, the last 2:"),
        *(("", f"try {n}") for n in (4, 5)),
        ("decisions", "5 decisions, the last 3:"),
        *(("", f"choice {n}") for n in (3, 4, 5)),
    ]


def test_of_a_long_plan_the_next_tasks_and_the_last_done_ones_are_shown_in_order() -> None:
    plan = (
        *(task(f"done {n}", "done") for n in range(1, 10)),
        task("dropped", "dropped"),
        task("now", "in_progress"),
        *(task(f"later {n}", "open") for n in range(1, 5)),
    )

    assert texts(Work(plan=plan)) == [
        ("plan", f"9 of 15 tasks done, {MAX_TASKS} of them shown"),
        ("", "done         done 8"),
        ("", "done         done 9"),
        ("", "dropped      dropped"),
        ("", "in progress  now"),
        *(("", f"open         later {n}") for n in range(1, 5)),
    ]


def test_of_too_many_unfinished_tasks_the_first_are_shown() -> None:
    plan = (task("done", "done"), *(task(f"later {n}", "open") for n in range(1, 10)))

    assert texts(Work(plan=plan)) == [
        ("plan", f"1 of 10 tasks done, {MAX_TASKS} of them shown"),
        *(("", f"open         later {n}") for n in range(1, 9)),
    ]


def test_a_row_says_what_is_known_of_a_file_a_check_an_error_a_decision_and_the_step() -> None:
    work = Work(
        changes=(
            FileChange(
                path="/w/a.py", kind="edited", edits=3, last_entry_id="e1", committed=True, checked=True
            ),
            FileChange(
                path="/w/b.py", kind="created", edits=2, last_entry_id="e2", committed=False, checked=False
            ),
        ),
        checks=(
            WorkCheck(kind="types", command="mypy", outcome="unknown", entry_id="e3", stale=False),
            WorkCheck(kind="types", command="mypy", outcome="unknown", entry_id="e3", stale=False),
            WorkCheck(kind="test", command="pytest", outcome="passed", entry_id="e4", stale=True),
        ),
        open_errors=(OpenError(text="no space", command="cp a b", entry_id="e5"),),
        decisions=(WorkDecision(text="a queue", was="recursion", entry_id="e6"),),
        now=CurrentStep(text="I look.", entry_id="e7"),
    )

    # The same check twice is one row.
    assert work_rows(work, "/w") == [
        WorkRow(label="files", text="a.py", note="3 edits, committed, checked", entry_id="e1"),
        WorkRow(text="b.py", note="created, uncommitted, unchecked", entry_id="e2"),
        WorkRow(label="checks", lead="type check ended, result unknown: ", text="mypy", entry_id="e3"),
        WorkRow(lead="tests passed: ", text="pytest", note="files changed since", entry_id="e4"),
        WorkRow(label="open errors", text="no space (cp a b)", entry_id="e5", look="bad"),
        WorkRow(label="decisions", text="a queue (before: recursion)", entry_id="e6"),
        WorkRow(label="now", text="I look.", entry_id="e7"),
    ]
