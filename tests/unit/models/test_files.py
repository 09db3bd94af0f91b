"""The packaged model rows and the user's models.toml, valid and damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compactd.core.models.registry import Override, Registry
from compactd.models.registry_files import PACKAGED, read_overrides, read_packaged


@pytest.fixture
def packaged(tmp_path: Path) -> Path:
    """A copy of the packaged files, to be damaged."""
    for name in ("models.jsonl", "models.sha256"):
        shutil.copy(PACKAGED / name, tmp_path / name)
    return tmp_path


def test_the_packaged_rows_are_those_of_their_hash(packaged: Path) -> None:
    rows, warnings = read_packaged(packaged)

    assert warnings == ()
    assert len(rows.all_rows()) > 10_000


def flipped(folder: Path) -> None:
    content = bytearray((folder / "models.jsonl").read_bytes())
    content[1_000_000] ^= 1
    (folder / "models.jsonl").write_bytes(content)


def cut(folder: Path) -> None:
    (folder / "models.jsonl").write_bytes((folder / "models.jsonl").read_bytes()[:500_000])


def emptied(folder: Path) -> None:
    (folder / "models.jsonl").write_bytes(b"")


def gone(folder: Path) -> None:
    (folder / "models.jsonl").unlink()


def without_hash(folder: Path) -> None:
    (folder / "models.sha256").unlink()


def with_strange_hash(folder: Path) -> None:
    (folder / "models.sha256").write_bytes(b"\xff\x00")


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (flipped, "models.jsonl"),
        (cut, "models.jsonl"),
        (emptied, "models.jsonl"),
        (gone, "models.jsonl"),
        (without_hash, "models.sha256"),
        (with_strange_hash, "models.sha256"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_damaged_file_is_named_and_every_answer_is_a_guess(
    damage: object, named: str, packaged: Path
) -> None:
    assert callable(damage)
    damage(packaged)

    rows, warnings = read_packaged(packaged)
    answer = Registry(rows).lookup("anthropic/claude-opus-4-6")

    assert len(warnings) == 1
    assert warnings[0].startswith(f"compactd/models/data/{named} ")
    assert "Reinstall compactd" in warnings[0]
    assert str(packaged) not in warnings[0]
    assert (answer.context_window, answer.confidence) == (128_000, "guess")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[[model", "line 1: expected ']]' at the end of an array declaration"),
        ("# mine\n[model]\nmatch = 'x'\n", "line 2: write [[model]], with two brackets"),
        ("model = 5", "line 1: write [[model]], with two brackets"),
        ("\n[[model]]\ncontext = 5\n", "line 2: there is no match"),
        ("[[model]]\nmatch = 'x'\ncontext = 'many'\n", "line 3: context: expected a whole number, got str"),
        ("[[model]]\nmatch = 'x'\n\ncontext = 0\n", "line 4: context is 0; it must be above 0"),
        ("[[model]]\nmatch = 'x'\noutput = -1\n", "line 3: output is -1; it must be above 0"),
        ("[[model]]\nmatch = ''\n", "line 2: match is empty; it must name a model"),
        ("[[model]]\nmatch = ['a']\n", "line 2: match: expected str, got array"),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_mistake_in_models_toml_is_told_with_its_line(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))

    overrides, warnings = read_overrides(file)

    assert overrides == ()
    assert len(warnings) == 1
    assert warnings[0].startswith("models.toml")
    assert told in warnings[0]


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        ("[[model]]\nmatch = 'b'\ncontext = -1\n", 6),
        ("[[model]]\nmatch = 'b\ncontext = 4\n", 6),
        ("[[model]]\nmatch =\n", 5),
        ("[[model]]\nmatch = 'b'\ncontext = 5\ncontext = 6\n", 7),
        ("[[model]]\ncontext = 5000\n", 4),
    ],
)
def test_one_wrong_model_leaves_the_others_in_force(wrong: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    before, after = "[[model]]\nmatch = 'a'\ncontext = 9000\n", "[[model]]\nmatch = 'c'\ncontext = 7000\n"
    file.write_text(before + wrong + after, "utf-8")

    overrides, warnings = read_overrides(file)

    assert overrides == (Override(match="a", context=9000), Override(match="c", context=7000))
    assert [warning.partition(":")[2][:8] for warning in warnings] == [f" line {line}:"]


def test_a_word_that_is_not_known_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    file = tmp_path / "models.toml"
    file.write_text("version = 1\n[[model]]\nmatch = 'a'\ncontexts = 4\noutput = 5\n", "utf-8")

    overrides, warnings = read_overrides(file)

    assert overrides == (Override(match="a", output=5),)
    assert warnings == (
        "models.toml: line 1: version is not known; the file may contain only [[model]]",
        "models.toml: line 4: contexts is not known; use match, provider, context, input, output",
    )


def test_no_file_is_no_mistake(tmp_path: Path) -> None:
    assert read_overrides(None) == ((), ())
    assert read_overrides(tmp_path / "models.toml") == ((), ())


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "models.toml").mkdir()

    overrides, warnings = read_overrides(tmp_path / "models.toml")

    assert overrides == ()
    assert [warning[:27] for warning in warnings] == ["models.toml cannot be read:"]
