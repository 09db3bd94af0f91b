"""What `opencode import` (1.18.33) demands of a file, and what `opencode export` files do not show."""

from __future__ import annotations

import json

from compactd.formats.files.detect import read
from compactd.formats.files.write import write


def written(*messages: dict[str, object]) -> list[dict[str, dict[str, dict[str, int]]]]:
    data = json.dumps({"format": "neutral", "session_id": "ses_1", "messages": messages}).encode()
    found: list[dict[str, dict[str, dict[str, int]]]] = json.loads(write(read(data), "opencode").data)[
        "messages"
    ]
    return found


def test_no_message_is_earlier_than_the_one_before_because_opencode_sorts_them() -> None:
    made = written(
        {"role": "user", "content": "One.", "created_at": 1_767_225_600},
        {"role": "assistant", "content": "Two."},
        {"role": "user", "content": "Three.", "created_at": 1_767_225_500},
        {"role": "assistant", "content": "Four.", "created_at": 1_767_225_700},
    )

    times = [message["info"]["time"]["created"] for message in made]
    assert times == [1_767_225_600_000] * 3 + [1_767_225_700_000]


def test_thinking_has_a_time() -> None:
    thought = {"type": "thinking", "text": "Hm."}
    made = written({"role": "assistant", "content": [thought], "created_at": 1_767_225_600})

    (part,) = made[0]["parts"]
    assert part["time"] == {"start": 1_767_225_600_000, "end": 1_767_225_600_000}
