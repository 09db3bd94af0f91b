"""The pages on clients, profiles and providers: examples run, settings are valid, tables are complete."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from compactd.core.budget.profiles import PROFILES
from compactd.models.providers.keys import KeyEntry
from compactd.storage.settings_files import WORKSPACE_FILE, from_file

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    page for folder in ("clients", "profiles", "providers") for page in (DOCS / folder).glob("*.md")
)
NODE_MODULES = ROOT / "examples" / "node" / "node_modules"

PRINTED = {
    "python": ["1 message, True\n", "40\n", "overflow True\n", "completed\n", "1001 No session has this id"],
    "node": ["1\n"],
}
"""What the examples of a page print, or the beginning of it."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)


def examples(language: str, *, with_jq: bool | None = None) -> list[object]:
    return [
        pytest.param(page, number, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(blocks(page, language))
        if with_jq is None or ("jq" in block) is with_jq
    ]


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A folder with a session, and a `compactd` on the path."""
    program = tmp_path / "bin" / "compactd"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m compactd "$@"\n')
    program.chmod(0o755)
    shutil.copy(ROOT / "examples" / "session.jsonl", tmp_path)
    path = os.pathsep.join((str(program.parent), str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "COMPACTD_HOME": str(tmp_path / "data"), "PATH": path, "HOME": str(tmp_path)}


def ran(command: list[str], env: dict[str, str], folder: Path) -> str:
    done = subprocess.run(
        command, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.mark.parametrize(("page", "number"), examples("python"))
def test_the_python_of_a_page_runs_as_it_stands(page: Path, number: int, env, tmp_path: Path) -> None:
    out = ran([sys.executable, "-c", blocks(page, "python")[number]], env, tmp_path)

    assert out.startswith(PRINTED[page.stem][number])


@pytest.mark.parametrize(("page", "number"), examples("js"))
def test_the_node_of_a_page_runs_as_it_stands(page: Path, number: int, env, tmp_path: Path) -> None:
    subprocess.run(["sh", str(NODE_MODULES.parent / "setup.sh")], env=env, check=True, timeout=100)

    out = ran(["node", "-e", blocks(page, "js")[number]], {**env, "NODE_PATH": str(NODE_MODULES)}, tmp_path)

    assert out.endswith(PRINTED[page.stem][number])


@pytest.mark.parametrize(("page", "number"), examples("sh", with_jq=False))
def test_the_shell_of_a_page_runs_as_it_stands(page: Path, number: int, env, tmp_path: Path) -> None:
    ran(["bash", "-e", "-o", "pipefail", "-c", blocks(page, "sh")[number]], env, tmp_path)


@pytest.mark.system
@pytest.mark.parametrize(("page", "number"), examples("sh", with_jq=True))
def test_the_jq_of_a_page_runs_as_it_stands(page: Path, number: int, env, tmp_path: Path) -> None:
    out = ran(["bash", "-e", "-o", "pipefail", "-c", blocks(page, "sh")[number]], env, tmp_path)

    assert "null" not in out


@pytest.mark.parametrize("folder", ["profiles", "providers"])
def test_each_request_of_the_pages_is_answered(folder: str, env, tmp_path: Path) -> None:
    lines = [
        line
        for page in (DOCS / folder).glob("*.md")
        for line in re.findall(r'^\{"jsonrpc".*$', page.read_text("utf-8"), re.M)
    ]
    told = "\n".join(lines) + "\n"

    done = subprocess.run(
        ["compactd", "serve"], input=told, env=env, capture_output=True, text=True, timeout=60, check=False
    )

    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) >= len(lines)
    assert all("error" not in answer for answer in answers)


@pytest.mark.parametrize("name", sorted(PROFILES))
def test_the_settings_of_a_profiles_page_are_taken_without_a_warning(name: str, tmp_path: Path) -> None:
    [settings] = blocks(DOCS / "profiles" / f"{name}.md", "toml")
    path = tmp_path / WORKSPACE_FILE
    path.write_text(settings)

    layer, warnings = from_file(path, WORKSPACE_FILE)

    assert warnings == ()
    assert layer is not None
    assert layer[1].profile == name


def test_the_tables_of_the_settings_page_are_the_codes() -> None:
    sys.path.append(str(ROOT / "tools"))
    tool = importlib.import_module("settings_page")

    assert tool.PAGE.read_text("utf-8") == tool.page(), f"stale: run `{tool.COMMAND}`"


def test_the_keys_of_the_providers_pages_are_as_the_file_has_them() -> None:
    tables = [
        tomllib.loads(block)
        for page in (DOCS / "providers").glob("*.md")
        for block in blocks(page, "toml")
        if "[providers]" not in block
    ]

    entries = [msgspec.convert(entry, KeyEntry) for one in tables for entry in one.values()]
    assert len(entries) == 5


@pytest.fixture(scope="module")
def reference() -> Iterator[ModuleType]:
    sys.path.append(str(ROOT / "tools"))
    yield importlib.import_module("reference_pages")
    sys.path.remove(str(ROOT / "tools"))


def test_the_generated_parts_of_the_pages_are_up_to_date(reference: ModuleType) -> None:
    stale = [page.name for page in reference.stale_pages()]

    assert stale == [], f"stale: run `{reference.COMMAND}`"


def test_a_changed_table_makes_its_page_stale(reference: ModuleType) -> None:
    stale = reference.stale_pages({"profile": lambda name: f"another table for {name}"})

    assert {page.stem for page in stale} == set(PROFILES)


def test_each_profile_has_a_page_with_its_own_numbers(reference: ModuleType) -> None:
    pages = {page.stem: page.read_text("utf-8") for page in (DOCS / "profiles").glob("*.md")}

    assert set(pages) == set(PROFILES)
    assert len({reference.profile(name) for name in PROFILES}) == len(PROFILES)
    assert all(reference.profile(name) in text for name, text in pages.items())


def test_each_wire_has_a_page_that_shows_what_it_sends(reference: ModuleType) -> None:
    text = "\n".join(page.read_text("utf-8") for page in (DOCS / "providers").glob("*.md"))
    shown = {mark["name"] for mark in reference.MARK.finditer(text) if mark["kind"] == "request"}

    assert shown == {"openai", "openai_responses", "anthropic", "gemini", "ollama"}
    assert '"store": false' in text
    assert text.count("<!-- end -->") == len(reference.MARK.findall(text))


def test_each_page_stands_in_the_sites_table_of_contents() -> None:
    table = (ROOT / "mkdocs.yml").read_text("utf-8")

    assert [page.name for page in PAGES if page.relative_to(DOCS).as_posix() not in table] == []


@pytest.mark.editor
def test_what_the_editors_page_says_starts_a_daemon_in_neovim_and_emacs(env, tmp_path: Path) -> None:
    page = DOCS / "clients" / "editors.md"
    [lua], [elisp] = blocks(page, "lua"), blocks(page, "elisp")
    is_ready = "vim.lsp.get_clients()[1] and vim.lsp.get_clients()[1].initialized"
    wait = f"assert(vim.wait(20000, function() return {is_ready} end))"
    (tmp_path / "start.lua").write_text(f"{lua}\n{wait}\nvim.cmd('qall!')\n")

    ran(["nvim", "--headless", "--clean", "-l", "start.lua"], env, tmp_path)
    asked = f"(progn (require 'jsonrpc) (princ (jsonrpc-request {elisp} :daemon/ping nil)))"
    out = ran(["emacs", "--batch", "--eval", asked], env, tmp_path)

    assert out != ""
