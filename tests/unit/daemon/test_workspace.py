"""The folders of an editor's workspace, and which paths are inside them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from compactd.daemon.lsp.workspace import folders_of, is_below


@pytest.mark.parametrize(
    ("params", "folders"),
    [
        ({}, ()),
        ({"rootUri": None, "workspaceFolders": None}, ()),
        ({"rootUri": "file:///home/me/a%20b/"}, ("/home/me/a b",)),
        ({"rootPath": "/home/me"}, ("/home/me",)),
        ({"rootUri": "file:///one", "rootPath": "/two"}, ("/one",)),
        (
            {"workspaceFolders": [{"uri": "file:///a", "name": "a"}, {"uri": "file:///b", "name": "b"}]},
            ("/a", "/b"),
        ),
        ({"rootUri": "file:///old", "workspaceFolders": [{"uri": "file:///new", "name": "n"}]}, ("/new",)),
        ({"rootUri": "vscode-remote://host/x"}, ()),
        ({"rootUri": "file://."}, ()),
        ({"rootUri": "http://[", "rootPath": "/two"}, ()),
        ({"rootUri": 5}, ()),
    ],
)
def test_folders_are_read_from_what_an_editor_says_at_initialize(
    params: dict[str, Any], folders: tuple[str, ...]
) -> None:
    assert folders_of(Raw(json.dumps(params).encode())) == folders


def test_an_editor_that_says_nothing_has_no_folder() -> None:
    assert folders_of(UNSET) == ()


@pytest.mark.parametrize(
    ("path", "is_it"),
    [
        ("/work/one", True),
        ("/work/one/", True),
        ("/work/one/deep/er", True),
        ("/work/one/../two", False),
        ("/work/onetwo", False),
        ("/work", False),
        ("one", False),
        ("", False),
        (None, False),
    ],
)
def test_a_folder_is_below_another_by_its_parts(path: str | None, is_it: bool) -> None:
    assert is_below(("/elsewhere", "/work/one"), path) is is_it


def test_everything_is_below_the_root() -> None:
    assert is_below(("/",), "/work") is True
