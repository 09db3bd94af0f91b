"""The repository of `security/test_hostile_repository.py`, opened in each editor: no code of it runs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.editors.emacs.driven import batch
from tests.editors.nvim.driven import headless, install
from tests.editors.vscode.house import House, fresh, package
from tests.editors.world import World
from tests.support.hostile_repository import HostileRepository, hostile_repository

pytestmark = [pytest.mark.editor, pytest.mark.git]

NVIM = """
local told = {}
vim.notify = function(message) told[#told + 1] = message end
vim.cmd("Compactd start")
vim.wait(100000, function() return #told > 0 or require("compactd").state() ~= nil end, 5)
vim.cmd("checkhealth compactd")
print("TOLD" .. vim.json.encode({
  told = told,
  state = require("compactd").state() ~= nil,
  place = require("compactd.daemon").place or vim.empty_dict(),
}))
"""

EMACS = """
(require 'compactd-commands)
(require 'compactd-health)
(require 'json)
(find-file "loader.py")
(compactd-session-start nil nil (lambda (_session) nil))
(let ((end (+ (float-time) 100)))
  (while (and (not (compactd-session-current)) (not (eq compactd-daemon-status 'failed)) (< (float-time) end))
    (accept-process-output nil 0.01)))
(compactd-health-lines)
(princ (concat "TOLD" (json-encode (list :state (and (compactd-session-current) t)
                                         :place (cadr compactd-daemon-place)))))
"""


class InTheRepository(World):
    """A person who stands in the repository, and whose shell puts its folders before all others."""

    @property
    def env(self) -> dict[str, str]:
        hostile = HostileRepository(self.workspace, self.workspace.parent / "marks")
        return hostile.environment(super().env)


@pytest.fixture
def hostile(tmp_path: Path) -> HostileRepository:
    hostile = hostile_repository(tmp_path)
    (hostile.root / "loader.py").write_text("CACHE = {}\n")
    return hostile


@pytest.fixture
def world(tmp_path: Path, hostile: HostileRepository) -> World:
    world = InTheRepository(home=tmp_path / "home", workspace=hostile.root)
    world.home.mkdir(mode=0o700)
    return world


def test_neovim_starts_the_daemon_outside_the_repository(world: World, hostile: HostileRepository) -> None:
    install(world)

    done = headless(world, NVIM, "--cmd", "set exrc")

    seen = json.loads(done.stderr.partition("TOLD")[2].splitlines()[0])
    assert hostile.sprung() == []
    assert seen["place"]["path"] == str(Path(sys.executable).with_name("compactd")), seen
    assert (seen["told"], seen["state"]) == ([], True)


def test_emacs_starts_the_daemon_outside_the_repository(world: World, hostile: HostileRepository) -> None:
    done = batch(world, EMACS, "--eval", "(setq vc-handled-backends nil)")

    assert hostile.sprung() == [], done.stderr
    seen = json.loads(done.stdout.partition("TOLD")[2])
    assert seen == {"state": True, "place": str(Path(sys.executable).with_name("compactd"))}


def test_vs_code_starts_the_daemon_outside_a_workspace_that_is_not_trusted(
    hostile: HostileRepository, tmp_path: Path
) -> None:
    (hostile.root / "session.json").rename(hostile.root / "opened.json")
    settings = {
        "security.workspace.trust.startupPrompt": "never",
        "security.workspace.trust.enabled": True,
    }
    bin_dir = str(Path(sys.executable).parent)
    environ = hostile.environment({"PATH": f"{bin_dir}:/usr/local/bin:/usr/bin:/bin"})
    # The server takes its PATH from a login shell: this one says again what the person's has.
    home = fresh(tmp_path / "home")
    (home / ".profile").write_text(f"export PATH='{environ['PATH']}'\n")

    with House(home, package(), settings, environ, trusts=False) as house:
        saw = house.play("untrusted.mjs", {"url": house.url(hostile.root), "file": "opened.json"})
        logged = "".join(log.read_text() for log in house.logs())

    assert hostile.sprung() == []
    assert f"starting {bin_dir}/compactd serve" in logged
    assert saw["can write"] is False
