"""The worked examples of CONTRIBUTING.md work: a copy of the code with them has the method and the format."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "protocol/wire.py": None,
    "protocol/methods.py, in METHODS": "    for method in (\n",
    "daemon/handlers/sessions.py, in SessionHandlers": None,
    "formats/agents/memo.py": None,
    "formats/files/session_formats.py, in SESSION_FORMATS": "SESSION_FORMATS = (\n",
    "formats/files/session_formats.py, in of_record": '    kind = text_in(record, "type")\n',
}
"""Where each piece goes: after this line, or at the end of the file."""


def pieces() -> dict[str, str]:
    """Return the code of the worked examples, by the place that the comment above it names."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    found: dict[str, str] = {}
    for block in re.findall(r"^```python\n(# .*?)^```$", text, re.M | re.S):
        for place, code in re.findall(r"^# (\S+\.py[^\n]*)\n(.*?)(?=^# \S+\.py|\Z)", block, re.M | re.S):
            found[place] = code
    return found


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return a copy of the package's folder with the worked examples."""
    package = tmp_path / "server" / "compactd"
    shutil.copytree(ROOT / "server" / "compactd", package, ignore=shutil.ignore_patterns("__pycache__"))
    for place, piece in pieces().items():
        file = package / place.partition(",")[0]
        text = file.read_text("utf-8") if file.exists() else ""
        after = PLACES[place]
        if after is None:
            text += f"\n{piece}"
        else:
            assert text.count(after) == 1
            text = text.replace(after, after + piece)
        file.write_text(text, "utf-8")
    return package.parent


def run(code: Path, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "compactd", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=code.parent,
        env={
            **os.environ,
            "PYTHONPATH": str(code),
            "COMPACTD_HOME": str(code.parent / "data"),
            "HOME": str(code.parent),
        },
        timeout=120,
        check=False,
    )


def test_every_place_has_a_piece() -> None:
    assert pieces().keys() == PLACES.keys()


def test_the_method_and_the_format_of_the_page_work(code: Path) -> None:
    calls = [
        ("session/start", {"session_id": "a"}),
        ("session/rename", {"session_id": "a", "title": "Stale cache"}),
        ("session/rename", {"session_id": "a", "title": ""}),
    ]
    lines = "".join(
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n"
        for number, (method, params) in enumerate(calls)
    )
    served = run(code, "serve", stdin=lines)
    answers = {one["id"]: one for one in map(json.loads, served.stdout.splitlines()) if "id" in one}
    listed = run(code, "sessions", "--all", "--json")
    (code.parent / "talk.jsonl").write_text(
        '{"memo": 1, "who": "user", "said": "Hello."}\n{"memo": 1, "who": "x"}\n'
    )
    seen = run(code, "inspect", "talk.jsonl", "--json")

    assert answers[1]["result"] == {"title": "Stale cache"}
    assert answers[2]["error"]["data"]["path"] == "$.title"
    assert [one["title"] for one in json.loads(listed.stdout)["sessions"]] == ["Stale cache"]
    assert json.loads(seen.stdout)["session"]["format"] == "memo", seen.stderr
