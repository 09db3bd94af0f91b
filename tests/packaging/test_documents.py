"""Statements in the documents that can be checked are true."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import compactd
from tools import codegen

ROOT = Path(__file__).resolve().parents[2]


def run_lines(lines: str, home: Path) -> list[dict[str, object]]:
    done = subprocess.run(
        [sys.executable, "-m", "compactd", "serve"],
        input=lines.encode(),
        capture_output=True,
        env={**os.environ, "COMPACTD_HOME": str(home)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_protocol_md_and_the_types_are_what_the_table_says() -> None:
    stale = [file.name for file in codegen.stale_files()]

    assert stale == [], f"stale: run `{codegen.COMMAND}`"


def test_compactd_and_its_conformance_suite_have_the_same_version() -> None:
    server, suite = (
        tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        for folder in ("", "conformance")
    )

    assert server["version"] == suite["version"] == compactd.__version__
    assert suite["dependencies"] == [f"compactd=={compactd.__version__}"]


def test_the_session_of_protocol_md_runs_as_it_stands(tmp_path: Path) -> None:
    block = re.search(r"```json\n(.*?)```", (ROOT / "protocol.md").read_text("utf-8"), re.S)

    answers = run_lines(block[1], tmp_path)

    by_id = {answer["id"]: answer for answer in answers if "id" in answer}
    assert sorted(by_id) == [1, 2, 3, 4, 5, 6]
    assert all("result" in answer for answer in by_id.values())


def requests_of(page: Path) -> list[str]:
    return re.findall(r'^\{"jsonrpc".*$', page.read_text("utf-8"), re.M)


PAGES_WITH_REQUESTS = [page for page in sorted((ROOT / "docs").glob("*.md")) if requests_of(page)]


def test_a_page_has_requests() -> None:
    assert PAGES_WITH_REQUESTS


@pytest.mark.parametrize("page", PAGES_WITH_REQUESTS, ids=lambda page: page.name)
def test_every_request_in_the_documents_is_answered(page: Path, tmp_path: Path) -> None:
    lines = requests_of(page)

    answers = run_lines("\n".join(lines) + "\n", tmp_path)

    assert len(answers) >= len(lines)
    assert all("error" not in answer for answer in answers)


def test_each_answer_of_the_questions_names_tests_that_there_are() -> None:
    named = set(re.findall(r"`(test_[a-z0-9_]+)`", (ROOT / "docs" / "faq.md").read_text("utf-8")))
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", file.read_text("utf-8"), re.M)
    }

    assert len(named) > 25
    assert named - there == set()


def test_the_line_of_the_readme_answers_one_line_with_the_window(tmp_path: Path) -> None:
    line = re.search(r"printf '(.*?)\\n' \| compactd serve", (ROOT / "README.md").read_text("utf-8"))

    answers = run_lines(line[1] + "\n", tmp_path)

    assert [answer["result"]["context_window"] for answer in answers] == [200_000]
    assert answers[0]["result"]["session_id"]


def test_the_python_of_the_readme_runs_as_it_stands(tmp_path: Path) -> None:
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)

    done = subprocess.run(
        [sys.executable, "-c", block[1]],
        capture_output=True,
        text=True,
        env={**os.environ, "COMPACTD_HOME": str(tmp_path)},
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\[\{'role': 'user', .*\] \d+\n", done.stdout)
