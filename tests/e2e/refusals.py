"""What must be true of every error answer, whatever its code."""

from __future__ import annotations

import json

from tests.support.client import Daemon, Refused


def polite(daemon: Daemon, error: Refused, code: int) -> Refused:
    """`error`, if it has this code and says something fit for a client, and the connection lives on."""
    assert error.code == code, error
    assert len(error.message) > 15
    for secret in ("Traceback", str(daemon.home), "/compactd/", ".py"):
        assert secret not in error.message
        assert secret not in json.dumps(error.data)
    assert daemon.call("daemon/ping") == {}
    return error
