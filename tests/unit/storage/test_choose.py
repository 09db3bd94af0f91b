"""The choice of the store: files by default, and clear errors for what cannot be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compactd.protocol.errors import StorageFailed
from compactd.storage.choose import make_store
from compactd.storage.folder import FolderStore


@pytest.mark.parametrize("url", [None, "", " "])
def test_sessions_are_files_unless_a_store_is_named(tmp_path: Path, url: str | None) -> None:
    assert isinstance(make_store({} if url is None else {"COMPACTD_STORE": url}, tmp_path), FolderStore)


def test_files_import_nothing_of_postgresql(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from compactd.storage.choose import make_store;"
        "make_store({}, pathlib.Path('.'));"
        "print([name for name in sys.modules if 'psycopg' in name or 'postgres' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "postgresql:/u:secret@h", "secret", "file:///secret"]
)
def test_an_unknown_store_is_refused_without_its_url(tmp_path: Path, url: str) -> None:
    with pytest.raises(StorageFailed, match="postgresql://USER") as told:
        make_store({"COMPACTD_STORE": url}, tmp_path)
    assert "secret" not in told.value.message


def test_a_missing_psycopg_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("compactd.storage.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StorageFailed, match=r"compactd\[postgres\]"):
        make_store({"COMPACTD_STORE": "postgresql://u:secret@h/d"}, tmp_path)
