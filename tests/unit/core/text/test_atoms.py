"""What counts as a path, an identifier, a literal, a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compactd.core.text.atoms import atoms, commands, words_of_chunk


def found(text: str) -> set[tuple[str, str]]:
    return set(atoms(text))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("see src/loader.py:88", "src/loader.py"),
        ("edited ./core/a.go.", "core/a.go"),
        ("in (/usr/lib/python3)", "/usr/lib/python3"),
        ("open README.md", "README.md"),
        ('"~/conf/app.toml"', "~/conf/app.toml"),
    ],
)
def test_a_path_has_a_slash_and_an_extension_or_two_slashes_or_is_a_file_name(text: str, path: str) -> None:
    assert ("path", path) in found(text)


@pytest.mark.parametrize("text", ["and/or", "1.2/3.4", "a.b", "12/24/2025", "e.g. this"])
def test_these_are_no_paths(text: str) -> None:
    assert not {a for a in found(text) if a[0] == "path"}


def test_identifiers_have_an_inner_underscore_or_a_hump() -> None:
    text = "call get_user then HttpServer2X and loadConfig but not CONFIG, plain or __all"

    assert {v for k, v in found(text) if k == "id"} == {"get_user", "HttpServer2X", "loadConfig"}


def test_literals_are_urls_flags_hashes_and_versions() -> None:
    text = "git push --force-with-lease 3f9ab12c to https://x.io/a?b=1. v1.2.3-rc1"

    assert {v for k, v in found(text) if k == "lit"} == {
        "--force-with-lease",
        "3f9ab12c",
        "https://x.io/a?b=1",
        "v1.2.3-rc1",
    }


def test_encoded_data_holds_no_atoms() -> None:
    assert found("QUJD/" * 200) == set()


def test_a_shell_line_gives_the_commands_worth_remembering() -> None:
    line = "cd /x && go test ./... -run TestA 2>&1 | head -5; npm  run   build > log.txt || echo no"

    assert list(commands(line)) == ["go test ./... -run TestA", "npm run build"]


def test_chinese_gives_pairs_of_signs_and_other_scripts_their_words() -> None:
    assert words_of_chunk("修复缓存") == ("修复", "复缓", "缓存")
    assert words_of_chunk("قاعدة") == ("قاعدة",)


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=6))
def test_a_text_has_the_atoms_of_its_lines(lines: list[str]) -> None:
    together = set(atoms("\n".join(lines)))

    assert together == set().union(*(set(atoms(line)) for line in lines))
