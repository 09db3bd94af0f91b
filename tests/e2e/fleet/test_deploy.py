"""The files in deploy/: their steps, without containers, against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.command_line import COMPACTD, TIMEOUT_S, environment
from tests.support.postgres import Server, programs

pytestmark = pytest.mark.system

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_the_role_the_tables_and_a_node_are_set_up_as_the_files_say(server: Server, tmp_path: Path) -> None:
    compose = (DEPLOY / "compose.yaml").read_text()
    migrate = re.search(r"command: \[compactd, (.+)\]", compose)
    serve = re.search(r"^CMD (\[.+\])$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)
    attach = re.search(r"exec --no-tty node1 compactd (\w+)$", compose, re.MULTILINE)
    assert migrate is not None
    assert serve is not None
    assert attach is not None
    server.sql("CREATE DATABASE agents")
    bin_ = programs()
    assert bin_ is not None
    role = {"POSTGRES_USER": "postgres", "POSTGRES_DB": "agents", "AGENTS_PASSWORD": "it's a 'secret'"}
    path = {"PATH": f"{bin_}:{os.environ['PATH']}", "PGHOST": str(server.folder)}
    subprocess.run([DEPLOY / "role.sh"], env={**path, **role}, check=True, capture_output=True)

    owner = {"COMPACTD_STORE": server.url("agents", "postgres")}
    for _ in range(2):  # also at the next start
        done = subprocess.run(
            [*COMPACTD, *migrate[1].split(", ")],
            env={**environment(tmp_path), **owner},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode in (0, 3), done.stderr

    # The path of a socket has at most 107 bytes.
    runtime = tempfile.mkdtemp(prefix="c", dir="/tmp")
    node = {"COMPACTD_STORE": server.url("agents", "agents"), "XDG_RUNTIME_DIR": runtime}
    program, *listen = json.loads(serve[1])
    assert program == "compactd"
    compactd = (sys.executable, "-m", "compactd")
    with (
        Daemon(tmp_path / "home", env=node, command=(*compactd, *listen)),
        Daemon(tmp_path / "home", env=node, command=(*compactd, attach[1])) as client,
    ):
        client.call("session/start", session_id="s")
        client.call("session/append", session_id="s", messages=[{"role": "user", "content": "Hello."}])
        assert client.call("session/context", session_id="s")["messages"]
    assert server.sql("SELECT count(*) FROM compactd.records", "agents") != [(0,)]
    shutil.rmtree(runtime)
    server.drop("agents")
