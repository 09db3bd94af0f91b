"""Where files are kept, and how they are named."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from compactd.storage.paths import config_folder, data_folder, file_stem

LINUX = {"HOME": "/home/ann"}
WINDOWS = {"USERPROFILE": "/Users/ann"}


@pytest.mark.parametrize(
    ("environ", "platform", "data", "config"),
    [
        (LINUX, "linux", "/home/ann/.local/share/compactd", "/home/ann/.config/compactd"),
        ({**LINUX, "XDG_DATA_HOME": "/d", "XDG_CONFIG_HOME": "/c"}, "linux", "/d/compactd", "/c/compactd"),
        (
            {**LINUX, "XDG_DATA_HOME": "d", "XDG_CONFIG_HOME": ""},
            "linux",
            "/home/ann/.local/share/compactd",
            "/home/ann/.config/compactd",
        ),
        (
            LINUX,
            "darwin",
            "/home/ann/Library/Application Support/compactd",
            "/home/ann/Library/Application Support/compactd",
        ),
        (
            WINDOWS,
            "win32",
            "/Users/ann/AppData/Local/compactd",
            "/Users/ann/AppData/Local/compactd",
        ),
        ({**WINDOWS, "LOCALAPPDATA": "/local"}, "win32", "/local/compactd", "/local/compactd"),
        ({**LINUX, "COMPACTD_HOME": "/mine"}, "linux", "/mine", "/home/ann/.config/compactd"),
        (
            {**LINUX, "COMPACTD_HOME": ""},
            "linux",
            "/home/ann/.local/share/compactd",
            "/home/ann/.config/compactd",
        ),
    ],
)
def test_each_platform_has_its_folders(
    environ: dict[str, str], platform: str, data: str, config: str
) -> None:
    assert (data_folder(environ, platform), config_folder(environ, platform)) == (Path(data), Path(config))


def test_a_relative_home_of_ours_is_below_the_current_folder() -> None:
    assert data_folder({"COMPACTD_HOME": "here"}) == Path.cwd() / "here"


def test_without_any_variable_there_is_a_home_all_the_same() -> None:
    assert data_folder({}).is_absolute()
    assert data_folder({}).name == "compactd"


@pytest.mark.parametrize(
    ("session_id", "slug"),
    [
        ("s1", "s1"),
        ("Fix the Loader!", "fix-the-loader"),
        ("../../etc/passwd", "etc-passwd"),
        ("/abs\\path\0", "abs-path"),
        ("日本語", ""),
        ("a" * 300, "a" * 40),
        ("-" * 50 + "x", "x"),
        ("word " * 20, "word-word-word-word-word-word-word-word"),
        ("\udcff", ""),
    ],
)
def test_a_name_is_a_slug_to_read_and_a_hash_to_find_it(session_id: str, slug: str) -> None:
    digest = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()

    assert file_stem(session_id) == f"{slug}-{digest[:16]}"
