"""`compactd install hermes` writes a plugin that imports the adapter, and `uninstall` removes it again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd.integrations.hooks.hermes_plugin import SOURCE
from tests.support.command_line import run

EXECUTABLE = "plugins/compactd/__init__.py"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / ".hermes"
    place.mkdir()
    return place


def test_the_plugin_is_written_once_and_removed_again(home: Path) -> None:
    (home / "config.yaml").write_text("model: m\n")
    done = run(home.parent, "install", "hermes")

    assert done.code == 0
    assert "hermes plugins enable compactd" in done.out
    written = {path.name: path.read_bytes() for path in (home / "plugins" / "compactd").iterdir()}
    assert written == {name: (SOURCE / name).read_bytes() for name in ("plugin.yaml", "__init__.py")}
    assert run(home.parent, "install", "hermes").out.endswith("compactd's plugin is already installed\n")

    assert run(home.parent, "uninstall", "hermes").code == 0
    assert sorted(path.name for path in home.rglob("*")) == ["config.yaml", "plugins"]
    assert "plugin is not installed" in run(home.parent, "uninstall", "hermes").out


def test_an_older_plugin_is_replaced_and_other_files_stay(home: Path) -> None:
    (home / EXECUTABLE).parent.mkdir(parents=True)
    (home / EXECUTABLE).write_text("old\n")
    (home / "plugins" / "compactd" / "notes.txt").write_text("mine\n")
    assert "-old" in run(home.parent, "install", "hermes").out
    assert (home / EXECUTABLE).read_bytes() == (SOURCE / "__init__.py").read_bytes()
    run(home.parent, "uninstall", "hermes")
    assert [path.name for path in (home / "plugins" / "compactd").iterdir()] == ["notes.txt"]


def test_a_dry_run_writes_nothing(home: Path) -> None:
    told = json.loads(run(home.parent, "install", "hermes", "--dry-run", "--json").out)
    assert (told["agent"], told["changed"]) == ("hermes", False)
    assert "+name: compactd" in told["diff"]
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("option", ["--reduce", "--steer", "--no-statusline", "--settings=x"])
def test_options_for_hooks_are_refused(home: Path, option: str) -> None:
    done = run(home.parent, "install", "hermes", option)
    assert done.code != 0
    assert "no hooks" in done.err
    assert list(home.iterdir()) == []


def test_without_hermes_nothing_is_written(home: Path) -> None:
    home.rmdir()
    done = run(home.parent, "install", "hermes")
    assert done.code != 0
    assert "Start Hermes once" in done.err
    assert not home.exists()
    other = home.parent / "other"
    other.mkdir()
    assert run(home.parent, "install", "hermes", env={"HERMES_HOME": str(other)}).code == 0
    assert (other / EXECUTABLE).exists()
