"""The examples in protocol.md are what the daemon really sends."""

from __future__ import annotations

import json
from pathlib import Path

from tests.unit.protocol.record_examples import FILE, record


def test_each_method_and_event_is_answered_as_its_example_says(tmp_path: Path) -> None:
    seen = record(tmp_path)

    wanted = json.loads(FILE.read_text("utf-8"))

    assert seen == wanted, "run `make schema`"


def test_each_method_and_event_has_an_example() -> None:
    from tools.codegen.protocol_model import CLIENT_REQUESTS, EVENTS, REQUESTS

    recorded = json.loads(FILE.read_text("utf-8"))

    assert set(recorded["calls"]) == {call.name for call in (*REQUESTS, *CLIENT_REQUESTS)}
    assert set(recorded["events"]) == {event.__struct_config__.tag for event in EVENTS}
