"""`compactd count`: tokens, characters and words of texts and session files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.command_line import ANSI, COMPACTD, TERMINAL, environment, run, run_each

TEXT = "The quick brown fox jumps over the lazy dog.\n"
TOKENS = 10
"""The tokens of `TEXT` in o200k_base, the newline included."""


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "fox.txt"
    path.write_text(TEXT)
    return path


def test_a_models_own_tokenizer_counts_exactly(tmp_path: Path, text: Path) -> None:
    seen, data = run_each(
        tmp_path, ("count", text, "--model", "gpt-5"), ("count", text, "--model", "gpt-5", "--json")
    )

    facts = data.json
    assert (facts["tokens"], facts["characters"], facts["words"], facts["exact"]) == (TOKENS, 45, 9, True)
    assert (facts["method"], facts["model"], facts["window"]) == ("o200k_base", "openai/gpt-5", 400_000)
    assert facts["share"] == TOKENS / 400_000
    assert [line.split()[:2] for line in seen.lines] == [
        ["tokens", str(TOKENS)],
        ["characters", "45"],
        ["words", "9"],
        ["share", "<0.1"],
    ]
    assert "exact (o200k_base)" in seen.out


def test_without_a_model_the_number_is_an_estimate(tmp_path: Path, text: Path) -> None:
    seen, data = run_each(tmp_path, ("count", text), ("count", text, "--json"))

    assert seen.lines[0].split()[1].startswith("~")
    assert "an estimate" in seen.lines[0]
    assert (data.json["exact"], data.json["share"], data.json["model"]) == (False, None, None)
    assert "share" not in seen.out


def test_standard_input_is_counted(tmp_path: Path) -> None:
    for arguments in ((), ("-",)):
        done = subprocess.run(
            [*COMPACTD, "count", *arguments, "--json"],
            input=TEXT.encode(),
            capture_output=True,
            env=environment(tmp_path),
            timeout=60,
            check=True,
        )
        assert json.loads(done.stdout)["characters"] == len(TEXT)


def test_several_files_have_a_line_each_and_a_sum(tmp_path: Path, text: Path) -> None:
    other = tmp_path / "two.md"
    other.write_text(TEXT * 2)

    seen = run(tmp_path, "count", text, other, "--model", "gpt-5")
    narrow = run(tmp_path, "count", "fox.txt", "two.md", env={**TERMINAL, "COLUMNS": "40"})

    rows = [line.split() for line in seen.lines[1:4]]
    assert [(row[-1].rpartition("/")[2], row[1], row[2]) for row in rows] == [
        ("fox.txt", "45", "9"),
        ("two.md", "90", "18"),
        ("total", "135", "27"),
    ]
    assert int(rows[2][0]) == int(rows[0][0]) + int(rows[1][0])
    assert max(len(ANSI.sub("", line)) for line in narrow.lines) <= 40


def test_of_a_session_file_the_messages_are_counted_and_not_its_json(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([{"role": "user", "content": TEXT}, {"role": "assistant", "content": "Yes."}]))

    session, plain = run_each(tmp_path, ("count", path, "--json"), ("count", path, "--plain", "--json"))

    (one,) = session.json["files"]
    assert (one["messages"], one["words"], one["characters"]) == (2, 10, 49)
    assert plain.json["files"][0]["messages"] is None
    assert plain.json["characters"] == len(path.read_text())


def test_what_is_no_text_is_refused_and_the_others_are_counted(tmp_path: Path, text: Path) -> None:
    picture = tmp_path / "picture.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")

    alone, both, data, missing, folder = run_each(
        tmp_path,
        ("count", picture),
        ("count", text, picture),
        ("count", text, picture, "--json"),
        ("count", "nothing.txt"),
        ("count", tmp_path),
    )

    assert (alone.code, alone.out) == (1, "")
    assert "it looks binary" in alone.err
    assert (both.code, data.code) == (1, 1)
    assert "fox.txt" in both.lines[1]
    assert "it looks binary" in both.err
    assert [bool(one["error"]) for one in data.json["files"]] == [False, True]
    assert data.json["words"] == 9
    assert (missing.code, folder.code) == (2, 2)


def test_texts_in_other_encodings_are_read(tmp_path: Path) -> None:
    (tmp_path / "wide.txt").write_bytes(TEXT.encode("utf-16"))
    (tmp_path / "latin.txt").write_bytes("Größe\n".encode("latin-1"))
    (tmp_path / "empty.txt").write_text("")

    wide, latin, empty = (
        run(tmp_path, "count", name, "--json") for name in ("wide.txt", "latin.txt", "empty.txt")
    )

    assert wide.json["characters"] == 45
    assert latin.json["characters"] == 6
    assert "not valid UTF-8 at 2 places" in latin.err
    assert (empty.code, empty.json["tokens"]) == (0, 0)


def test_a_model_that_nobody_knows_is_told_and_its_window_is_a_guess(tmp_path: Path, text: Path) -> None:
    seen = run(tmp_path, "count", text, "--model", "nobody-knows-this")

    assert seen.code == 0
    assert "no source knows the model" in seen.err
    assert "128,000?" in seen.lines[-1]
