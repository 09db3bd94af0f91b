"""What is installed: the wheel, in an environment that has nothing else."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
MOST_BYTES = 4 * 2**20


def built(folder: Path) -> Path:
    """The wheel of this checkout."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    return wheel


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.timeout(600)
def test_the_wheel_is_small_the_same_each_time_and_enough_in_an_empty_environment(tmp_path: Path) -> None:
    wheel = built(tmp_path / "one")
    built(tmp_path / "two")
    venv.create(tmp_path / "venv", with_pip=True)
    bin_ = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COMPACTD_HOME": str(tmp_path / "data")}

    def compactd(*arguments: str, told: str = "") -> str:
        done = subprocess.run(
            [str(bin_ / "compactd"), *arguments],
            input=told,
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
            timeout=60,
            check=True,
        )
        return done.stdout

    ping = compactd("serve", told='{"jsonrpc":"2.0","id":1,"method":"daemon/ping"}\n')
    model = json.loads(compactd("models", "anthropic/claude-sonnet-4-5", "--json"))
    schema = json.loads(compactd("schema"))
    count = {"text": "one two", "model": "openai/gpt-4o"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tokens/count", "params": count}
    tokens = compactd("serve", told=json.dumps(asked) + "\n")
    light = subprocess.run(
        [str(bin_ / "python"), "-c", "import compactd.client, sys; print('textual' in sys.modules)"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )

    assert wheel.stat().st_size <= MOST_BYTES
    assert digests(tmp_path / "one") == digests(tmp_path / "two")
    assert json.loads(ping)["id"] == 1
    assert model["context_window"] == 200_000
    assert "session/start" in schema["properties"]["requests"]["properties"]
    assert json.loads(tokens)["result"] == {"tokens": 2, "exact": True, "method": "o200k_base"}
    assert light.stdout == "False\n"
