"""The Python client reduces an output and gets its original back."""

from __future__ import annotations

from pathlib import Path

from compactd.client import Client
from tests.support.command_line import environment
from tests.support.outputs import log


def test_a_reduced_output_is_expanded_to_its_original(tmp_path: Path) -> None:
    with Client(env=environment(tmp_path / "home")) as client:
        session = client.session_start().session_id
        done = client.session_reduce(session_id=session, name="bash", content=log(), call_id="c1")
        assert done.reduced
        (kept,) = client.session_expand(session_id=session, entry_id=done.entry_id).entries
        assert log() in str(bytes(kept.message), "utf-8").replace("\\n", "\n")
