"""What `doctor` finds in a session, and the repaired session."""

from __future__ import annotations

import json
from typing import Any

from compactd.formats.files.detect import read
from compactd.formats.files.diagnosis import Diagnosis, diagnose
from compactd.formats.files.write import write
from tests.unit.formats.outlined import outline
from tests.unit.formats.written import HEADER, claude, lines, pi

Found = list[tuple[str, int | None, int | None]]


def found(data: bytes) -> tuple[Diagnosis, Found]:
    """(the diagnosis, its findings as (kind, message, line))."""
    diagnosis = diagnose(data, read(data))
    return diagnosis, [(one.kind, one.message, one.line) for one in diagnosis.findings]


def array(*messages: dict[str, Any]) -> bytes:
    return json.dumps(list(messages)).encode()


ASKED = {"role": "user", "content": "Go."}


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "run", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": "I run.", "tool_calls": calls}


def result(call_id: str, text: str = "done") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def test_nothing_is_found_in_a_whole_session() -> None:
    diagnosis, findings = found(
        array(ASKED, call("a"), result("a"), {"role": "assistant", "content": "Done."})
    )

    assert findings == []
    assert len(diagnosis.repaired.messages) == 4


def test_a_result_without_its_call_is_found_and_left_out() -> None:
    diagnosis, findings = found(array(ASKED, result("lost"), {"role": "assistant", "content": "Done."}))

    assert findings == [("orphan result", 2, None)]
    assert outline(diagnosis.repaired) == ["user: Go.", "assistant: Done."]


def test_a_call_without_a_result_is_found_and_given_one() -> None:
    diagnosis, findings = found(array(ASKED, call("a", "b"), result("a"), ASKED))

    assert findings == [("call without result", 2, None)]
    assert [message.role for message, _ in diagnosis.repaired.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]


def test_a_session_that_ends_with_its_calls_is_not_ill() -> None:
    _, findings = found(array(ASKED, call("a")))

    assert findings == []


def test_a_second_result_of_one_call_is_found_and_left_out() -> None:
    diagnosis, findings = found(array(ASKED, call("a"), result("a"), result("a", "again"), ASKED))

    assert findings == [("duplicate result", 4, None)]
    assert outline(diagnosis.repaired)[2:] == ["tool: None#a: done", "user: Go."]


def test_a_late_result_is_found_and_put_next_to_its_call() -> None:
    diagnosis, findings = found(array(ASKED, call("a"), ASKED, result("a")))

    assert findings == [("late result", 4, None)]
    assert [message.role for message, _ in diagnosis.repaired.messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_a_call_that_the_user_makes_is_a_wrong_role() -> None:
    use = {"type": "tool_use", "id": "a", "name": "run", "input": {}}
    data = array(
        {"role": "user", "content": [{"type": "text", "text": "Go."}, use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
    )

    diagnosis, findings = found(data)

    assert findings == [("wrong role", 1, None)]
    assert outline(diagnosis.repaired) == ["user: Go.", "assistant: run#a {}", "user: None#a: done"]


def test_another_programs_names_of_roles_are_found_and_mended() -> None:
    diagnosis, findings = found(
        array({"role": "human", "content": "Go."}, {"role": "AI", "content": "Done."}, ASKED)
    )

    assert findings == [("wrong role", 1, None), ("wrong role", 2, None)]
    assert outline(diagnosis.repaired) == ["user: Go.", "assistant: Done.", "user: Go."]


def test_a_role_that_nobody_knows_is_named() -> None:
    _, findings = found(array(ASKED, {"role": "narrator", "content": "Meanwhile"}, ASKED))

    assert [kind for kind, _, _ in findings] == ["wrong role"]


def test_a_torn_and_a_repeated_line_are_found() -> None:
    whole = lines(HEADER, pi({"role": "user", "content": "go"}), pi({"role": "assistant", "content": "ok"}))
    repeated = lines(pi({"role": "user", "content": "go"}))

    diagnosis, findings = found(whole + repeated + b'{"type":"message","id":"x","mess')

    assert findings == [("torn line", None, 5), ("repeated line", None, 4)]
    assert len(diagnosis.repaired.messages) == 3


def test_a_damaged_line_and_broken_text_are_found() -> None:
    data = lines(claude("user", "u1", "go")) + b"garbage\n" + lines(claude("user", "u2", "farther"))

    _, findings = found(data.replace(b"farther", b"f\xff"))

    assert sorted(findings, key=str) == [("broken text", None, 3), ("damaged line", None, 2)]


def test_a_summary_that_stands_twice_is_found_and_kept_once() -> None:
    summary = "The cache was fixed and the test is green."
    data = lines(
        HEADER,
        pi({"role": "user", "content": "go"}, id="1"),
        {"type": "compaction", "id": "2", "timestamp": "t", "summary": summary},
        pi({"role": "user", "content": summary}, id="3"),
        pi({"role": "user", "content": "on"}, id="4"),
        {"type": "compaction", "id": "5", "timestamp": "t", "summary": summary},
    )

    diagnosis, findings = found(data)

    assert findings == [("summary twice", 3, None), ("summary twice", 5, None)]
    assert (diagnosis.repaired.compactions, outline(diagnosis.repaired)) == (
        1,
        ["user: go", f"user summary: {summary}", "user: on"],
    )


def test_claude_codes_rows_of_its_own_state_and_equal_summaries_are_no_problem() -> None:
    state = {"type": "mode", "mode": "normal", "sessionId": "5c5cb639-aaaa-bbbb-cccc-dddddddddddd"}
    summary = "This session is being continued from a previous conversation: it goes on."
    data = lines(
        state,
        claude("user", "u1", "go"),
        state,
        {"type": "system", "subtype": "compact_boundary", "uuid": "b1"},
        claude("user", "u2", summary, isCompactSummary=True),
        claude("user", "u3", "on"),
        {"type": "system", "subtype": "compact_boundary", "uuid": "b2"},
        claude("user", "u4", summary, isCompactSummary=True),
    )

    diagnosis, findings = found(data)
    _, with_a_repeated_message = found(data + lines(claude("user", "u3", "on")))

    assert findings == []
    assert diagnosis.repaired.compactions == 2
    assert with_a_repeated_message == [("repeated line", None, 9)]


def test_a_summary_that_lost_its_mark_is_marked_again() -> None:
    text = "[Conversation summary — older messages were compacted]\n\nAll done."

    diagnosis, findings = found(array({"role": "user", "content": text}, ASKED))

    assert findings == [("summary unmarked", 1, None)]
    assert outline(diagnosis.repaired) == [f"user summary: {text}", "user: Go."]


def test_the_same_message_twice_is_found_by_its_id() -> None:
    data = lines(
        HEADER,
        pi({"role": "user", "content": "go"}, id="1"),
        pi({"role": "user", "content": "on"}, id="2"),
        {"type": "message", "id": "1", "timestamp": "later", "message": {"role": "user", "content": "go"}},
    )

    diagnosis, findings = found(data)

    assert findings == [("duplicate message", 3, None)]
    assert outline(diagnosis.repaired) == ["user: go", "user: on"]


def test_what_stayed_beside_a_summary_still_stays_when_messages_before_it_are_gone() -> None:
    data = lines(
        HEADER,
        pi({"role": "toolResult", "toolCallId": "x", "toolName": "run", "content": "lost"}, id="1"),
        pi({"role": "user", "content": "go"}, id="2"),
        pi({"role": "user", "content": "on"}, id="3"),
        {"type": "compaction", "id": "4", "timestamp": "t", "summary": "S", "firstKeptEntryId": "3"},
    )

    diagnosis, findings = found(data)
    again = read(write(diagnosis.repaired, "pi").data)

    assert findings == [("orphan result", 1, None)]
    assert (diagnosis.repaired.first_kept, again.first_kept) == (((2, 1),), ((2, 1),))


def test_a_repaired_session_has_nothing_wrong() -> None:
    sick = lines(
        HEADER,
        pi({"role": "toolResult", "toolCallId": "x", "toolName": "run", "content": "lost"}),
        pi({"role": "user", "content": "go"}),
        pi(
            {
                "role": "assistant",
                "content": [{"type": "toolCall", "id": "a", "name": "run", "arguments": {}}],
            }
        ),
        pi({"role": "user", "content": "on"}),
    )

    diagnosis, findings = found(sick)
    _, left = found(write(diagnosis.repaired, "pi").data)

    assert [kind for kind, _, _ in findings] == ["orphan result", "call without result"]
    assert left == []
