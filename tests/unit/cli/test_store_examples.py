"""The examples of `compactd store`, with a real server."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.support import postgres
from tests.support.command_line import run
from tests.support.postgres import OWNER, Server
from tests.unit.cli.test_every_command import DONE, NOTHING, examples

EXAMPLE = Path(__file__).parents[3] / "examples" / "session.jsonl"
server = postgres.server
pytestmark = [pytest.mark.system, pytest.mark.timeout(120)]


def test_the_examples_of_store_run_in_this_order(server: Server, tmp_path: Path) -> None:
    name = "examples"
    server.sql(f"CREATE DATABASE {name} OWNER {OWNER}")
    server.sql("CREATE ROLE compactd LOGIN PASSWORD 'secret'")
    lines = [line for command, line in examples() if command == "store"]
    assert len(lines) > 4
    assert run(tmp_path, "import", EXAMPLE).code == 0

    for line in lines:
        role = OWNER if "migrate" in line else "compactd"
        program, *arguments = shlex.split(line)
        assert program == "compactd"
        done = run(tmp_path, *arguments, env={"COMPACTD_STORE": server.url(name, role)})
        assert done.code == (NOTHING if line.endswith("--to files") else DONE), (line, done)
