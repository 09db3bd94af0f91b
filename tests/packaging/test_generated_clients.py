"""Common code generators make a client from schema.json: its types compile, and a session runs with them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.client import SERVE, environment

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "server" / "compactd" / "protocol" / "schema.json"
HERE = Path(__file__).parent / "generated"
VENV = ROOT / ".cache" / "generators"
BIN = Path(sys.executable).parent
PATH = f"{BIN}{os.pathsep}{os.environ['PATH']}"

SEEN = {
    "appended": 40,
    "decision": "over",
    "compacted": True,
    "first_role": "user",
    "fits": True,
    "listed": ["generated"],
    "window": 20_000,
    "exit_code": 0,
}


@pytest.fixture(scope="module", autouse=True)
def generators() -> None:
    env = {**os.environ, "PATH": PATH, "PYTHON": sys.executable, "VENV": str(VENV)}
    subprocess.run(["sh", str(HERE / "setup.sh")], env=env, check=True, timeout=300)


def ran(*command: object, cwd: Path, home: Path | None = None) -> str:
    env = environment(home, {"PATH": PATH}) if home is not None else {**os.environ, "PATH": PATH}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(400)
def test_a_client_of_datamodel_code_generator_runs_a_session(tmp_path: Path) -> None:
    shutil.copy(HERE / "client.py", tmp_path)
    python = VENV / "bin" / "python"
    generate = (
        "--input",
        SCHEMA,
        "--input-file-type",
        "jsonschema",
        "--output-model-type",
        "pydantic_v2.BaseModel",
        "--formatters",
        "black",
        "--output",
        tmp_path / "protocol.py",
    )
    ran(python, "-m", "datamodel_code_generator", *generate, cwd=tmp_path)

    seen = json.loads(ran(python, "client.py", *SERVE, cwd=tmp_path, home=tmp_path / "home"))

    events = seen.pop("events")
    assert seen == SEEN
    assert {"CompactionStart", "CompactionEnd", "UsageUpdate"} <= set(events)


@pytest.mark.timeout(400)
def test_a_client_of_json_schema_to_typescript_compiles_and_runs_a_session(tmp_path: Path) -> None:
    for name in ("client.ts", "tsconfig.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    tools = HERE / "node_modules" / ".bin"
    ran(tools / "json2ts", "-i", SCHEMA, "-o", tmp_path / "protocol.d.ts", cwd=tmp_path)
    ran(tools / "tsc", "--project", tmp_path, cwd=tmp_path)

    seen = json.loads(ran("node", "client.js", *SERVE, cwd=tmp_path, home=tmp_path / "home"))

    assert seen.pop("ends") == ["completed"]
    assert seen == SEEN
