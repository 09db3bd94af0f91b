"""What a provider's SDK raised, as the daemon is told."""

from __future__ import annotations

from types import SimpleNamespace

from compactd.integrations.frameworks.failures import request_error
from compactd.protocol.messages import NULL


class Refused(Exception):
    status_code = 400
    response = SimpleNamespace(text="")


def test_an_empty_body_does_not_hide_what_a_cause_says() -> None:
    cause = Refused("prompt is too long")
    cause.response = SimpleNamespace(text='{"error": "9000 tokens > 8000"}')
    error = Refused("bad request")
    assert request_error(error).body == NULL
    error.__cause__ = cause
    assert b"9000 tokens" in bytes(request_error(error).body)
