"""The Neovim plugin: its functions, its cost when Neovim starts, and its installation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.editors.nvim.driven import OLD, binary, headless, install
from tests.editors.world import EDITORS, daemon_command, make_world

pytestmark = pytest.mark.editor


def test_the_parts_do_what_they_say(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)

    done = headless(world, (Path(__file__).parent / "parts.lua").read_text())

    assert re.search(r"\b(19|[2-9][0-9]) checks, 0 failed", done.stderr), done.stderr + done.stdout


def test_a_start_of_neovim_registers_the_command_and_loads_nothing(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)

    done = headless(
        world,
        "local function ours(name) return vim.startswith(name, 'compactd') end\n"
        "local loaded = vim.tbl_filter(ours, vim.tbl_keys(package.loaded))\n"
        "print(vim.fn.exists(':Compactd'), #loaded, #vim.lsp.get_clients())\n",
    )

    assert done.stderr.split() == ["2", "0", "0"]


def test_registration_takes_no_time_and_the_first_gauge_comes_soon(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)

    done = headless(
        world,
        "local at = vim.uv.hrtime()\n"
        "vim.g.loaded_compactd = nil\n"
        "vim.cmd('source ' .. vim.api.nvim_get_runtime_file('plugin/compactd.lua', false)[1])\n"
        "local registered = (vim.uv.hrtime() - at) / 1e6\n"
        "at = vim.uv.hrtime()\n"
        "require('compactd.command')\n"
        "local loaded = (vim.uv.hrtime() - at) / 1e6\n"
        f"require('compactd').setup({{ cmd = {{ '{daemon_command()}', 'serve' }} }})\n"
        "at = vim.uv.hrtime()\n"
        "vim.cmd('Compactd start')\n"
        "vim.wait(100000, function() return require('compactd').statusline() ~= '' end, 1)\n"
        "local gauge = (vim.uv.hrtime() - at) / 1e6\n"
        "print(('registered %.1f loaded %.1f gauge %.0f'):format(registered, loaded, gauge))\n",
    )

    times = dict(re.findall(r"(registered|loaded|gauge) ([\d.]+)", done.stderr))
    print(f"milliseconds, the daemon's start in the gauge's: {times}")
    assert float(times["registered"]) < 250
    assert float(times["gauge"]) < 60_000


def test_the_help_is_found_and_every_tag_is_one_of_a_kind(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    folder = install(world)

    done = headless(
        world,
        "vim.cmd('helptags ALL')\nvim.cmd('help :Compactd-compact')\n"
        "print(vim.fn.expand('%:t'), vim.fn.getline('.'))\n",
    )

    assert done.stderr.split()[0] == "compactd.txt", done.stderr
    assert "*:Compactd-compact*" in done.stderr
    assert ":Compactd-undo" in (folder / "doc" / "tags").read_text()


def test_the_health_check_of_a_new_neovim_names_the_daemon(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)

    done = headless(
        world,
        "vim.cmd('checkhealth compactd')\n"
        "print(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'))",
    )

    assert "OK Neovim 0.11.4" in done.stderr
    assert f"OK PATH: {daemon_command()}" in done.stderr
    assert "protocol 1.0, pid " in done.stderr
    assert "ERROR" not in done.stderr


def test_the_health_check_without_a_daemon_says_what_to_do(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)

    done = headless(
        world,
        "vim.env.PATH = '/nowhere'\nvim.cmd('checkhealth compactd')\n"
        "print(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'))",
    )

    assert "ERROR no daemon was found" in done.stderr
    assert "pipx install git+https://example.org/compactd/compactd" in done.stderr


@pytest.mark.skipif(not OLD.exists(), reason="this system has no Neovim of its own")
def test_an_old_neovim_is_told_so_and_sees_no_error(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    install(world)
    version = subprocess.run([str(OLD), "--version"], capture_output=True, text=True).stdout.split("\n")[0]

    done = headless(
        world,
        "vim.cmd('Compactd compact')\nvim.cmd('checkhealth compactd')\n"
        "print(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n'))",
        program=str(OLD),
    )

    said = done.stdout + done.stderr
    assert done.returncode == 0
    assert re.search(r"v0\.[0-9]\.", version), version
    assert "this needs Neovim 0.10 or newer" in said
    assert "is too old" in said
    assert "E5108" not in said


def test_the_folder_holds_no_stray_file() -> None:
    kinds = {each.suffix for each in (EDITORS / "nvim").rglob("*") if each.is_file()}

    assert kinds <= {".lua", ".txt", ".md"}
    assert binary()
