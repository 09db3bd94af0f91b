"""Missing or faulty daemons: Neovim shows a message that says what to do, never an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.editors.nvim.driven import headless, install
from tests.editors.world import BAD_DAEMONS, World, daemon_command, fake_daemon, make_world

pytestmark = pytest.mark.editor

START = """
local told = {}
vim.notify = function(message) told[#told + 1] = message end
require("compactd").setup(vim.json.decode([==[SETUP]==]))
vim.cmd("Compactd start")
vim.wait(100000, function() return #told > 0 or require("compactd").state() ~= nil end, 5)
vim.wait(200)
REST
print("TOLD" .. vim.json.encode({
  told = told,
  state = require("compactd").state() or vim.empty_dict(),
  status = require("compactd.daemon").status,
  log = require("compactd.log").lines(),
  clients = #vim.lsp.get_clients(),
}))
"""


def told(world: World, setup: dict[str, object], rest: str = "") -> dict[str, Any]:
    """Return the message that the user sees with a daemon as `setup` says, and what else was seen."""
    install(world)
    done = headless(world, START.replace("SETUP", json.dumps(setup)).replace("REST", rest))
    assert "TOLD" in done.stderr, done.stderr + done.stdout
    assert "E5108" not in done.stderr
    assert "Error" not in done.stderr.partition("TOLD")[0], done.stderr
    return dict(json.loads(done.stderr.partition("TOLD")[2].splitlines()[0]))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("garbage", "no message of the protocol"),
        ("hangs", "did not answer within"),
        ("ends", "ended with code 3"),
        ("old", "pipx upgrade compactd"),
        ("stranger", "is no compactd"),
    ],
)
def test_a_bad_daemon_is_named(tmp_path: Path, kind: str, said: str) -> None:
    world = make_world(tmp_path)
    bad = fake_daemon(tmp_path, BAD_DAEMONS[kind])
    patience = 300 if kind == "hangs" else 60_000

    seen = told(world, {"cmd": [str(bad)], "start_timeout_ms": patience})

    assert len(seen["told"]) == 1, seen
    assert said in seen["told"][0]
    assert seen["status"] == "failed"
    assert seen["state"] == {}
    if kind == "ends":
        assert any("cannot begin: no such thing" in line for line in seen["log"])


def test_a_daemon_that_is_not_there_is_named_by_the_setting(tmp_path: Path) -> None:
    seen = told(make_world(tmp_path), {"cmd": ["/nowhere/compactd", "serve"]})

    assert seen["told"] == ["compactd: the daemon of your setting `cmd` cannot be run: /nowhere/compactd"]


def test_without_any_daemon_the_person_is_told_how_to_get_one(tmp_path: Path) -> None:
    seen = told(
        make_world(tmp_path), {}, "vim.env.PATH = '/nowhere'\nvim.cmd('Compactd restart')\nvim.wait(300)"
    )

    assert "pipx install git+https://example.org/compactd/compactd" in seen["told"][0]


def test_a_daemon_that_prints_to_stderr_works_and_its_words_are_in_the_log(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    loud = tmp_path / "loud daemon"
    loud.write_text(f"#!/bin/sh\necho 'deprecated: everything' >&2\nexec {daemon_command()} \"$@\"\n")
    loud.chmod(0o755)

    seen = told(world, {"cmd": [str(loud), "serve"]})

    assert seen["told"] == []
    assert seen["state"]["message_count"] == 0
    assert any("stderr deprecated: everything" in line for line in seen["log"])


def test_a_daemon_that_dies_again_and_again_is_left_alone_in_the_end(tmp_path: Path) -> None:
    world = make_world(tmp_path)
    rest = """
    local function pid() return select(2, require("compactd.daemon").ids()) end
    for _ = 1, 3 do
      local before = #told
      vim.uv.kill(pid(), "sigkill")
      vim.wait(100000, function() return #told > before end, 5)
    end
    vim.wait(200)
    """

    seen = told(world, {"cmd": [daemon_command(), "serve"], "restarts": 2, "restart_delay_ms": 10}, rest)

    assert seen["status"] == "failed"
    assert "and is left alone" in seen["told"][-1]
    assert ["1 session resumed" in each for each in seen["told"]] == [True, True, False]


@pytest.mark.parametrize("name", ["with spaces", "100% ünïcödé 漢字", "per%20cent", "-dash"])
def test_a_workspace_of_any_name_works(tmp_path: Path, name: str) -> None:
    world = make_world(tmp_path, workspace=name)

    seen = told(world, {"cmd": [daemon_command(), "serve"]}, "vim.cmd('Compactd context')\nvim.wait(100)")

    assert seen["told"] == []
    assert seen["state"]["read_only"] is False


def test_the_projects_own_daemon_is_run_once_the_person_trusts_it_and_until_it_changes(
    tmp_path: Path,
) -> None:
    world = make_world(tmp_path)
    (world.workspace / ".git").mkdir()
    inner = world.workspace / "a" / "b"
    inner.mkdir(parents=True)
    own = world.workspace / ".venv" / "bin" / "compactd"
    own.parent.mkdir(parents=True)
    own.write_text(f'#!/bin/sh\nexec {daemon_command()} "$@"\n')
    own.chmod(0o755)
    above = tmp_path / "venv" / "bin"
    above.mkdir(parents=True)
    (above / "compactd").symlink_to(daemon_command())
    install(world)

    done = headless(
        world,
        "local finding = require('compactd.finding')\n"
        "local function look()\n"
        f"  local p = finding.places('{inner}')\n"
        "  print(vim.json.encode(vim.tbl_map(function(e) return { e.from, e.cmd ~= nil } end, p)))\n"
        f"  print(finding.find('{inner}').path)\n"
        "end\n"
        "look()\n"
        f"vim.cmd('silent edit {own} | silent trust')\n"
        "look()\n"
        f"vim.fn.writefile({{ '#!/bin/sh', 'exit' }}, '{own}')\n"
        "look()\n"
        "vim.env.PATH = '/nowhere'\n"
        f"print(select(2, finding.find('{inner}')))\n",
    )

    seen = done.stderr.replace("\\/", "/")
    refused = f'[["bundled",false],["project",false],["PATH",true]]\n{daemon_command()}'
    trusted = f'[["bundled",false],["project",true],["PATH",true]]\n{own}'
    assert [seen.count(refused), seen.count(trusted)] == [2, 1], seen
    assert seen.index(refused) < seen.index(trusted) < seen.rindex(refused)
    assert f":edit {own} | trust" in seen
