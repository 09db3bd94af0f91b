"""What the measure of `benchmarks/reduce` counts, on a session that is small enough to count by hand."""

from __future__ import annotations

from benchmarks.reduce import document
from benchmarks.reduce.figures import kinds_of, share
from benchmarks.reduce.measure import measure, read, without_numbers
from benchmarks.reduce.reducers import Reducer, clip, reducers
from benchmarks.retention.records import Call, Record, Session
from compactd.core.reduce.output import ToolOutput

OLD = "def total_amount(values):\n    return sum_of_values(values)"
FILE = f"import base_module\n{OLD}\nunused_name = 1"
FAILED = "Error: cannot open the configuration_file\nand more"


def _session() -> Session:
    return Session(
        "entire-by-hand",
        (
            Record(0, "user", "Mend it."),
            Record(1, "assistant", calls=(Call("a", "Read", {"file_path": "app.py"}),)),
            Record(2, "tool", FILE, call_id="a"),
            Record(3, "assistant", calls=(Call("b", "Edit", {"old_string": OLD, "new_string": "x_y = 1"}),)),
            Record(4, "tool", FAILED, call_id="b", is_error=True),
            Record(5, "assistant", "The configuration_file is missing."),
        ),
    )


def _keep_all(output: ToolOutput) -> str:
    return output.text


def _keep_nothing(output: ToolOutput) -> str:
    return ""


def _measured(reducer: Reducer) -> tuple[int, int, int, int, int, int]:
    done = measure(read(_session(), frozenset()), reducer, frozenset())
    whole = done.whole
    return whole.used, whole.kept, done.edits, done.possible_edits, whole.error_lines, whole.kept_error_lines


def test_facts_edits_and_error_lines_are_counted() -> None:
    # Used: two lines and two names of the file, one name of the error.
    assert _measured(_keep_all) == (5, 5, 1, 1, 1, 1)
    assert _measured(_keep_nothing) == (5, 0, 1, 0, 1, 0)


def test_a_share_is_the_mean_over_sessions_that_are_large_enough() -> None:
    measured = [measure(read(_session(), frozenset()), _keep_nothing, frozenset())]

    assert share(measured).sessions == 0
    assert kinds_of(measured)["file"].saved == 1.0


def test_clipping_keeps_the_head_and_the_tail() -> None:
    text = clip(100)(ToolOutput("Bash", {}, "a" * 500 + "b" * 500))

    assert text == "a" * 80 + "\n[900 characters omitted]\n" + "b" * 20


def test_line_numbers_are_removed_and_blank_lines_stay() -> None:
    assert without_numbers("  1→a\n\n  3→\tb  ") == "a\n\n\tb"


def test_every_reducer_of_the_page_reduces_a_session() -> None:
    long = ToolOutput("Bash", {"command": "ls"}, "\n".join(f"line {n} of the output" for n in range(2_000)))

    assert all(len(make()(long)) <= len(long.text) for make in reducers().values())


def test_the_page_agrees_with_its_figures() -> None:
    assert document.stale() == []
