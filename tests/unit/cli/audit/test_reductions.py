"""What `compactd audit` says about reduced tool outputs: an estimate from the file, and what was counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from compactd.cli.audit.reductions import estimate_reduction
from tests.support.client import Daemon
from tests.support.command_line import recorded, run
from tests.support.outputs_of_tools import PIP, PIP_COMMAND, pip_output
from tests.unit.cli.audit.transcripts import OPUS, Json, answer, compacted, lines, said, time_of

NOVEL = "".join(f"{number * 7919 % 104729:x} {chr(97 + number % 26) * 9}\n" for number in range(120))
"""Lines of which nothing is left out, unless the context shows them."""


def called(number: int, name: str, output: str, parent: str, *, command: str = PIP_COMMAND) -> list[Json]:
    """Return Claude Code's records of a tool call and its output."""
    call_id = f"toolu_{number}"
    call = {"type": "tool_use", "id": call_id, "name": name, "input": {"command": command}}
    message = {"id": f"m{number}", "role": "assistant", "model": OPUS, "content": [call]}
    asked = answer(number, at=number, parent=parent, message=message)
    result = {"type": "tool_result", "tool_use_id": call_id, "content": output}
    given = {
        "type": "user",
        "uuid": f"t{number}",
        "parentUuid": f"a{number}",
        "timestamp": time_of(number),
        "sessionId": "s",
        "message": {"role": "user", "content": [result]},
    }
    return [asked, given]


def test_the_estimate_tells_the_tokens_by_tool() -> None:
    data = lines([said("u1"), *called(1, "Bash", PIP, "u1"), *called(2, "Other", "short", "t1")])

    found = estimate_reduction(data, "claude-code")

    assert (found.total.count, found.reduced) == (2, 1)
    assert [(name, one.count) for name, one in found.by_tool] == [("Bash", 1), ("Other", 1)]
    assert found.total.tokens_after < found.total.tokens_before // 10


def test_lines_count_as_shown_until_a_compaction_removes_them() -> None:
    again = called(2, "Bash", NOVEL, "t1")
    first = [said("u1"), *called(1, "Bash", NOVEL, "u1")]

    repeated = estimate_reduction(lines([*first, *again]), "claude-code")
    removed = estimate_reduction(
        lines([*first, *compacted("c1", "Summary.", at=1), *called(2, "Bash", NOVEL, "c1")]), "claude-code"
    )

    assert (repeated.reduced, removed.reduced) == (1, 0)
    assert removed.total.tokens_after == removed.total.tokens_before


def test_an_output_that_was_reduced_already_is_not_counted_again() -> None:
    shown = f"one\n[… 298 lines left out, expand e4]\n{pip_output(40)}"

    found = estimate_reduction(lines([said("u1"), *called(1, "Bash", shown, "u1")]), "claude-code")

    assert found.reduced == 0


def test_the_command_shows_the_estimate_and_what_was_counted_in_this_session(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(lines([said("u1"), *called(1, "Bash", PIP, "u1"), answer(3, at=9, parent="t1")]))
    with Daemon(tmp_path / "data") as daemon:
        for session_id, observe in (
            ("claude-code:s", False),
            ("claude-code:s", True),
            ("claude-code:t", False),
        ):
            daemon.call("session/start", session_id=session_id)
            daemon.call(
                "session/reduce",
                session_id=session_id,
                name="Bash",
                content=PIP,
                compare=False,
                observe=observe,
            )

    seen = run(tmp_path, "audit", path, "--html", tmp_path / "audit.html")
    found = run(tmp_path, "audit", path, "--json").json
    all_of_it = run(tmp_path, "audit", "--all", "--json").json

    assert any(line.startswith("reduced in this session: 1 output, ") for line in seen.lines)
    assert any(line.startswith("observed in this session, not reduced: 1 output, ") for line in seen.lines)
    assert any(line.startswith("if its tool outputs had been reduced: 1 output, ") for line in seen.lines)
    assert any(line.startswith("- Bash: 1 output, ") for line in seen.lines)
    assert "if its tool outputs had been reduced: 1 output, " in (tmp_path / "audit.html").read_text()
    assert (found["reductions"]["count"], found["reductions"]["observed"]["count"]) == (1, 1)
    assert found["reduction_estimate"]["by_tool"][0]["tool"] == "Bash"
    assert "reductions" not in all_of_it or all_of_it["reductions"]["count"] == 2


def test_a_session_of_which_nothing_could_be_left_out_says_so_in_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(lines([said("u1"), *called(1, "Bash", NOVEL, "u1"), answer(2, at=2, parent="t1")]))

    seen = run(tmp_path, "audit", path, "--html", tmp_path / "audit.html")

    assert seen.lines.count("tool outputs: nothing to leave out") == 1
    assert "tool outputs: nothing to leave out" in (tmp_path / "audit.html").read_text()


@pytest.mark.parametrize(
    "name", ["entire-5c5cb639-0.jsonl", "pi-large-session.jsonl", "entire-gemini-b1c09a91.jsonl"]
)
def test_a_recording_is_estimated_and_never_grows(tmp_path: Path, name: str) -> None:
    found = run(tmp_path, "audit", recorded(name), "--json").json["reduction_estimate"]

    assert 0 < found["reduced"] < found["outputs"]
    assert 0 < found["tokens_after"] < found["tokens_before"]
    assert all(one["tokens_after"] <= one["tokens_before"] for one in found["by_tool"])
    for field in ("tokens_before", "tokens_after", "outputs"):
        assert found[field] == sum(one[field] for one in found["by_tool"])
