"""A session of an ACP agent is mirrored even if its mirror could not be opened at first."""

from __future__ import annotations

from pathlib import Path

from compactd.client import Client
from tests.security.acp_editors import block, edited, mirrored
from tests.support.command_line import environment


def test_a_mirror_that_could_not_be_opened_at_first_is_opened_with_the_next_turn(tmp_path: Path) -> None:
    with Client(env=environment(tmp_path)) as other:
        other.session_start(session_id="acp:s1", working_dir=str(tmp_path))
        other.session_close(session_id="acp:s1")
        other.session_start(session_id="acp:s1")
        with edited(tmp_path) as editor:
            editor.prompt("Step one")
            refused = editor.prompt("/compact")
            other.close()
            editor.prompt("Step two")
            answer = editor.prompt("/context")
            code = editor.close()

    assert (refused["result"], answer["result"], code) == (
        {"stopReason": "end_turn"},
        {"stopReason": "end_turn"},
        0,
    )
    assert (
        "at the end of a turn; the turn is stored in compactd's copy of the session after the next turn"
        in editor.log
    )
    kept = mirrored(tmp_path)
    assert [one["content"] for one in kept if one["role"] == "user"] == [
        [block("Step one")],
        [block("Step two")],
    ]
    calls = [part["call_id"] for one in kept for part in one["content"] if part["type"] == "tool_call"]
    assert len(calls) == len(set(calls))
