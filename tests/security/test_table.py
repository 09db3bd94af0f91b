"""The table in docs/security.md names existing tests and all of them; the lock files have all hashes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
PAGE = ROOT / "docs" / "security.md"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_each_line_of_the_threat_model_names_tests_that_there_are() -> None:
    text = PAGE.read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|") and not line.startswith("|---")]
    bare = [row for row in rows if ".py" not in row and not row.endswith("| test |")]
    named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", "\n".join(rows))
    missing = [
        f"{file}::{test}"
        for file, test in named
        if not (TESTS / file).is_file()
        or not re.search(
            rf"^(?:async )?def {test}\b" if test else "", (TESTS / file).read_text("utf-8"), re.M
        )
    ]

    assert (bare, missing) == ([], [])
    assert len(named) > 60


def test_each_test_of_this_folder_stands_beside_a_line() -> None:
    named = set(re.findall(r"security/test_\w+\.py::(test_\w+)", PAGE.read_text("utf-8")))
    there = {
        name
        for file in (TESTS / "security").glob("test_*.py")
        if file.name != Path(__file__).name
        for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)
    }

    assert there - named == {"test_letters_of_every_script_and_joined_signs_are_shown_as_they_are"}


def test_the_locks_hold_what_the_project_asks_for_each_by_its_hash() -> None:
    done = ran("tools/lock.py", "--check")

    assert (done.stdout, done.returncode) == ("", 0)


def test_the_list_of_parts_has_each_package_of_the_lock_and_is_the_same_each_time() -> None:
    first, second = ran("tools/sbom.py"), ran("tools/sbom.py")

    bom = json.loads(first.stdout)
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    assert first.stdout == second.stdout
    assert (bom["bomFormat"], bom["specVersion"]) == ("CycloneDX", "1.6")
    assert {f"{one['name']}=={one['version']}" for one in bom["components"]} == set(
        re.findall(r"^\S+==[^\s;]+", lock, re.M)
    )
    assert all(one["externalReferences"][0]["hashes"] for one in bom["components"])
    assert set(bom["dependencies"][0]["dependsOn"]) <= {one["bom-ref"] for one in bom["components"]}


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("requirements-build.lock", "hatchling==", "hatchery==", "hatchling is missing"),
        ("requirements-build.lock", "hatchling==1.", "hatchling==2.", "is not within"),
        (
            "requirements-build.lock",
            "    --hash=sha256:",
            "    --hash=md5:",
            "neither a pinned package nor a hash",
        ),
        ("pyproject.toml", 'requires = ["hatchling>=1.25', 'requires = ["hatchling>=99', "is not within"),
        ("pyproject.toml", 'requires = ["hatchling', 'requires = ["evil-backend', "evil-backend is missing"),
    ],
    ids=["gone", "other-version", "no-hash", "newer-asked-for", "other-backend"],
)
def test_the_build_backend_is_pinned_by_its_hash(
    file: str, old: str, new: str, words: str, tmp_path: Path
) -> None:
    for name in ("pyproject.toml", *(lock.name for lock in ROOT.glob("requirements*.lock"))):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "lock.py", tmp_path / "tools")
    changed = tmp_path / file
    text = changed.read_text("utf-8")
    changed.write_text(text.replace(old, new), "utf-8")

    done = subprocess.run(
        [sys.executable, tmp_path / "tools" / "lock.py", "--check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert old in text
    assert (done.returncode, words in done.stdout) == (1, True), done.stdout + done.stderr
