"""How this compactd was installed, read from what the installers leave in an environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compactd._runtime.installation import installation, requirements, stable_program

UV = 'requirements = [{{ name = "compactd", {} }}{}]\n'


def tool(prefix: Path, row: str, more: str = "") -> Path:
    prefix.mkdir(parents=True, exist_ok=True)
    (prefix / "uv-receipt.toml").write_text("[tool]\n" + UV.format(row, more))
    return prefix


@pytest.mark.parametrize(
    ("row", "source"),
    [
        (
            'path = "/my wheels/compactd-0.1.0-py3-none-any.whl"',
            "'/my wheels/compactd-0.1.0-py3-none-any.whl'",
        ),
        ('directory = "/src/compactd"', "/src/compactd"),
        ('editable = "/src/compactd"', "--editable /src/compactd"),
        ('git = "https://example.org/c?rev=1"', "'compactd @ git+https://example.org/c?rev=1'"),
        ('extras = ["tui"]', "'compactd[tui]'"),
        ('specifier = ">=0.1"', "'compactd>=0.1'"),
    ],
)
def test_a_tool_of_uv_is_installed_again_from_where_it_came(row: str, source: str, tmp_path: Path) -> None:
    found = installation(tool(tmp_path, row, ', { name = "textual", specifier = ">=8,<9" }'))

    assert (found.kind, found.source, found.additions) == ("uv tool", source, ("textual>=8,<9",))


@pytest.mark.parametrize("receipt", ["", "[tool", "[tool]\nrequirements = 3", "[tool]\nrequirements = [3]"])
def test_a_receipt_that_cannot_be_read_is_no_error(receipt: str, tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text(receipt)

    assert installation(tmp_path)[2:] == ("compactd", "compactd", ())


@pytest.mark.parametrize("text", ['{"environment": "compactd-dev"}', "[]", "{"])
def test_pipx_knows_the_environment_by_its_own_name(text: str, tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").write_text(text)

    found = installation(tmp_path)

    named = json.loads(text)["environment"] if "dev" in text else None
    # A file that is no JSON is no file of pipx.
    assert (found.kind == "pipx") == (text != "{")
    assert named in (None, found.environment)


def test_the_requirements_of_an_extra_are_those_of_the_project() -> None:
    [textual] = requirements("tui")

    assert textual.startswith("textual")
    assert requirements("no-such-extra") == ("compactd[no-such-extra]",)


def script_in(folder: Path) -> Path:
    folder.mkdir(parents=True)
    script = folder / "compactd"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    return script


def test_a_link_on_the_path_to_the_same_script_is_stable(tmp_path: Path) -> None:
    script, other = script_in(tmp_path / "venv"), script_in(tmp_path / "other")
    for name, target in (("bin", script), ("wrong", other), ("gone", tmp_path / "nothing")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "compactd").symlink_to(target)
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "compactd").symlink_to(script)
    link = tmp_path / "bin" / "compactd"

    def found(*folders: str) -> Path:
        return stable_program(script, ":".join(str(tmp_path / folder) for folder in folders))

    assert found("wrong", "gone", "other", "project", "venv", "bin") == link
    assert found("wrong", "gone", "other", "project", "venv") == script
    assert stable_program(script, "bin:.") == script


def test_the_link_of_an_installer_is_found_off_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = script_in(tmp_path / "venv")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "compactd").symlink_to(script)
    monkeypatch.setenv("UV_TOOL_BIN_DIR", str(tmp_path / "tools"))

    assert stable_program(script, "/usr/bin") == tmp_path / "tools" / "compactd"
