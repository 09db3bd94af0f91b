"""A real Emacs in a terminal with the package on its load path, queried by evaluating Lisp."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.editors.driven import DrivenEditor
from tests.editors.terminal import PATIENCE_S, Terminal, program, wait_for
from tests.editors.world import EDITORS, World

INSTALL = "tests/editors/emacs/setup.sh installs it"


@functools.cache
def package() -> Path:
    """The package compiled, as an installation has it; the checkout stays as it is."""
    folder = Path(tempfile.mkdtemp(prefix="compactd-emacs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in (EDITORS / "emacs").glob("*.el"):
        shutil.copy(path, folder)
    subprocess.run(
        [program("emacs", install=INSTALL), "-Q", "--batch", "-L", ".", "-f", "batch-byte-compile",
         *sorted(path.name for path in folder.glob("*.el"))],
        cwd=folder, capture_output=True, check=True, timeout=300,
    )  # fmt: skip
    return folder


def batch(
    world: World, lisp: str, *arguments: str, timeout_s: float = 300
) -> subprocess.CompletedProcess[str]:
    """Emacs without a screen does `lisp`, with the package's folder on its load path."""
    script = world.home / "script.el"
    script.write_text(f";; -*- lexical-binding: t -*-\n{lisp}\n")
    return subprocess.run(
        [program("emacs", install=INSTALL), "-Q", "--batch", "-L", str(package()), *arguments,
         "-l", str(script)],
        cwd=world.workspace, env=world.env, capture_output=True, text=True, timeout=timeout_s,
    )  # fmt: skip


class Emacs(DrivenEditor):
    """One Emacs with its screen. Its end is the end of the `with`."""

    def __init__(self, world: World, setup: str, *, columns: int = 100, lines: int = 30) -> None:
        self._world = world
        number = len(list(world.home.glob("emacs-*.el")))
        socket = world.home / f"e{number}.sock"
        init = world.home / f"emacs-{number}.el"
        init.write_text(
            ";; -*- lexical-binding: t -*-\n"
            "(setq inhibit-startup-screen t make-backup-files nil create-lockfiles nil\n"
            "      auto-save-default nil suggest-key-bindings nil\n"
            "      ring-bell-function #'ignore visible-bell nil)\n"
            "(menu-bar-mode -1)\n(xterm-mouse-mode -1)\n"
            "(require 'compactd)\n(compactd-mode 1)\n(require 'compactd-commands)\n"
            f"{setup}\n"
            f"(require 'server)\n(require 'json)\n(setq server-socket-dir {json.dumps(str(world.home))})\n"
            f'(setq server-name "e{number}.sock")\n'
            "(server-start)\n"
        )
        command = [program("emacs", install=INSTALL), "-nw", "-Q", "-L", str(package()), "-l", str(init)]
        terminal = Terminal(command, cwd=world.workspace, env=world.env, columns=columns, lines=lines)
        super().__init__(terminal, socket)

    def ask(self, code: str) -> Any:
        return self.lisp(code)

    def lisp(self, form: str) -> Any:
        """Evaluate `form`. Return the value, converted through JSON."""
        out = self._world.home / "asked.json"
        form = (
            f"(let* ((seen {form}) (coding-system-for-write 'utf-8))"
            f" (with-temp-file {json.dumps(str(out))} (insert (json-encode seen))))"
        )
        done = subprocess.run(
            [program("emacsclient", install=INSTALL), "-s", str(self._socket), "--eval", form],
            capture_output=True, text=True, env=self._world.env, timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(out.read_text())

    def command(self, name: str) -> None:
        """Types M-x and a command's name."""
        self.terminal.press("M-x")
        self.terminal.see("M-x")
        self.terminal.type(name)
        self.terminal.press("Enter")

    def usage(self, name: str) -> Any:
        """A figure of the current session."""
        return self.lisp(f"(compactd-session-usage-of (compactd-session-current) :{name})")

    def used(self) -> int:
        """Return the tokens of the context."""
        return int(self.usage("current_context_tokens"))

    def seq(self) -> int:
        """Return the number of the last event."""
        return int(self.lisp("(compactd-session-seq (compactd-session-current))"))

    def idle(self, after: int = -1) -> None:
        """The model has answered, and the event behind `after` was seen."""
        self.until(
            "(let ((s (compactd-session-current)))"
            f' (and s (equal (compactd-session-status s) "idle") (> (compactd-session-seq s) {after}) t))',
            "the end of the answer",
        )

    def pid(self) -> int:
        """Return the process id of the daemon."""
        return int(self.until("(compactd-daemon-pid)", "a daemon"))

    def said(self, text: str) -> None:
        """The person was told so: the echo area, where the next message replaces it, is logged."""
        wait_for(lambda: text in self.messages(), text)

    def messages(self) -> str:
        """Return the messages that the user has seen."""
        return str(self.lisp('(with-current-buffer "*Messages*" (buffer-string))'))

    def log(self) -> str:
        return str(self.lisp("(with-current-buffer (compactd-log-buffer) (buffer-string))"))


def parts() -> Path:
    """The checks of the parts by themselves."""
    return Path(__file__).parent / "compactd-test.el"
