"""`compactd audit --html` in a real Chromium: accessible, offline, in light and dark.

Screenshots are left in build/editors/html.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.editors.html.test_page import HERE, HOSTILE, SHOTS, chromium, node, packages
from tests.unit.cli.audit.transcripts import lines
from tests.unit.cli.test_audit_command import records

pytestmark = pytest.mark.editor


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Return what Chromium saw, by colour scheme."""
    home = tmp_path_factory.mktemp("home")
    source, page = home / "s.jsonl", home / "audit.html"
    asked, *others = records()
    message = {"role": "user", "content": f"Never use {HOSTILE} here."}
    source.write_bytes(lines([{**asked, "message": message}, *others]))
    env = {**os.environ, "COMPACTD_HOME": str(home / "data"), "HOME": str(home)}
    command = [sys.executable, "-m", "compactd", "audit", str(source), "--html", str(page)]
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=300)
    SHOTS.mkdir(parents=True, exist_ok=True)
    look = [node(), str(HERE / "look_audit.js"), str(packages()), chromium(), str(page), str(SHOTS)]
    done = subprocess.run(look, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(params=["light", "dark"])
def scheme(request, seen):
    return seen[request.param]


def test_nothing_is_fetched_or_wrong(scheme) -> None:
    assert scheme["console"] == []
    assert scheme["requests"] == ["file:"]
    assert scheme["title"] == "Audit of s"


def test_the_picture_marks_each_rebuild_and_compaction(scheme) -> None:
    assert (scheme["marks"], scheme["compactions"]) == (4, 1)
    assert scheme["told"] == "The cost rises to $1.07 over 6 requests, with 4 rebuilds and 1 compaction."
    assert scheme["mark"] >= 8


def test_the_list_of_rebuilds_opens_with_the_keyboard(scheme) -> None:
    assert scheme["rows"] == 1 + 4


def test_it_is_accessible_and_fits_a_telephone(scheme) -> None:
    assert scheme["axe"] == []
    assert scheme["overflows"] == 0


def test_dark_is_dark_and_light_is_light(seen) -> None:
    def brightness(colour: str) -> int:
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(","))

    assert brightness(seen["dark"]["background"]) < 100 < 650 < brightness(seen["light"]["background"])
