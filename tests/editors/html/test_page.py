"""`compactd inspect --html` in a real Chromium: hovering, keyboard use, light and dark mode.

Screenshots are left in build/editors/html.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SHOTS = ROOT / "build" / "editors" / "html"
CACHE = Path(os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests")
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

pytestmark = pytest.mark.editor


def packages() -> Path:
    """The folder that setup.sh filled."""
    digest = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    return CACHE / f"html-{digest}"


def chromium() -> str:
    named = os.environ.get("COMPACTD_CHROMIUM")
    found = named or next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    assert found, "no Chromium: tests/editors/html/setup.sh installs it"
    return found


def node() -> str:
    beside = Path(sys.executable).with_name("node")
    return str(beside) if beside.exists() else "node"


def record(number: int, role: str, content: object, **fields: object) -> str:
    about = {"type": role, "uuid": f"u{number}", "sessionId": "s1", "cwd": "/home/someone/ledger"}
    return json.dumps(
        {**about, "message": {"role": role, "content": content, **fields}, **ABOUT.get(number, {})}
    )


ABOUT = {5: {"isCompactSummary": True}}


def session(path: Path) -> Path:
    """Three turns of Claude Code with a compaction between; its title and its texts try to be markup."""

    def answer(number: int, tokens: int, block: object) -> str:
        usage = {"input_tokens": tokens, "output_tokens": 10}
        return record(number, "assistant", [block], id=f"m{number}", model="claude-opus-4-5", usage=usage)

    def read(name: str, call_id: str) -> object:
        return {"type": "tool_use", "id": call_id, "name": "Read", "input": {"file_path": name}}

    def result(number: int, call_id: str, text: str, *, is_error: bool = False) -> str:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": is_error}
        return record(number, "user", [block])

    lines = [
        json.dumps({"type": "custom-title", "customTitle": HOSTILE, "sessionId": "s1"}),
        record(1, "user", f"Check the ledger. {HOSTILE}"),
        answer(2, 6_000, read("/home/someone/ledger/old.py", "t1")),
        result(3, "t1", "old " * 3_000),
        answer(4, 150_000, {"type": "text", "text": "Read."}),
        record(5, "user", f"This session is being continued. {HOSTILE}"),
        record(6, "user", "Go on."),
        answer(7, 30_000, read("/home/someone/ledger/big.py", "t2")),
        result(8, "t2", "the ledger was balanced " * 2_000),
        answer(9, 40_000, read(HOSTILE, "t3")),
        result(10, "t3", f"{HOSTILE} " * 300, is_error=True),
        record(11, "user", "And now?"),
        answer(12, 52_000, {"type": "text", "text": HOSTILE}),
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return what Chromium saw, by colour scheme."""
    home = tmp_path_factory.mktemp("home")
    page = home / "context.html"
    env = {**os.environ, "COMPACTD_HOME": str(home / "data"), "HOME": str(home)}
    command = [
        sys.executable,
        "-m",
        "compactd",
        "inspect",
        str(session(home / "s.jsonl")),
        "--html",
        str(page),
    ]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=300)
    SHOTS.mkdir(parents=True, exist_ok=True)
    look = [node(), str(HERE / "look.js"), str(packages()), chromium(), str(page), str(SHOTS)]
    done = subprocess.run(look, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["light", "dark"])
def scheme(request, seen):
    return seen[request.param]


def test_nothing_is_fetched_refused_or_wrong(scheme) -> None:
    assert scheme["console"] == []
    assert scheme["violations"] == []
    assert scheme["requests"] == ["file:"]


def test_hostile_names_are_shown_as_they_are(scheme) -> None:
    assert scheme["heading"] == HOSTILE
    assert scheme["title"] == f"Context of {HOSTILE}"


def test_the_growth_tells_each_answer_under_the_pointer(scheme) -> None:
    assert scheme["first"] == ["turn 1", "6,010 tokens, 3 % of the window"]
    assert scheme["last"] == [
        "turn 3",
        "52,010 tokens, 26 % of the window",
        "+12,000 since the answer before",
    ]
    assert scheme["covered"] is False
    assert scheme["compaction"] == ["compaction 1, in turn 1", "150,010 → 30,010 tokens"]


def test_the_bar_the_entries_and_the_cost_tell_what_is_under_the_pointer(scheme) -> None:
    name, size = scheme["bar"]
    assert name == "results"
    assert size.endswith("of the window")
    assert scheme["entry"][0] == "Read big.py"
    assert scheme["entry"][1].startswith("tool result of ")
    assert scheme["entry"][2] == "turn 2, message 8"
    turn, sum_, last = scheme["spent"]
    assert (turn, sum_, last) == ("turn 3", "$1.39 so far", "$0.260 for this request")
    assert scheme["nothing"] is None


def test_all_of_it_can_be_reached_and_read_with_the_keyboard(scheme) -> None:
    assert scheme["keyed"] == [
        "turn 2",
        "40,010 tokens, 20 % of the window",
        "+10,000 since the answer before",
    ]
    assert scheme["spoken"] == ", ".join(scheme["keyed"])
    assert scheme["escaped"] is None
    assert [place for place in scheme["tabbed"] if place.islower()][:4] == [
        "bar",
        "growth",
        "entries",
        "spent",
    ]
    assert "tool result of" in scheme["second"]


def test_it_is_accessible_and_fits_a_telephone(scheme) -> None:
    assert scheme["axe"] == []
    assert scheme["overflows"] == 0


def test_dark_is_dark_and_light_is_light(seen) -> None:
    def brightness(colour: str) -> int:
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    assert brightness(seen["dark"]["background"]) < 100 < 650 < brightness(seen["light"]["background"])
