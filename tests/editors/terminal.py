"""A program in a tmux terminal: types for the user, reads the screen, takes pictures of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).parents[2]

PATIENCE_S = 120.0
"""How long anything may take on a busy machine before a test gives up."""

_PAUSE_S = 0.03


def wait_for(look: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
    """Call `look` until it returns something. Return that."""
    end = time.monotonic() + patience_s
    while True:
        if seen := look():
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"never seen: {what}")
        time.sleep(_PAUSE_S)


class Terminal:
    """One program in one terminal. Its end is the end of the `with`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 100,
        lines: int = 30,
    ) -> None:
        self._name = f"compactd-{uuid.uuid4().hex[:8]}"
        self.size = (columns, lines)
        whole = {**os.environ, **env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        whole.pop("TMUX", None)
        self._env = whole
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), "-c", str(cwd),
            *(part for name in sorted({*env, "LC_ALL"}) for part in ("-e", f"{name}={whole[name]}")),
            "env", "TERM=tmux-256color", *command,
        )  # fmt: skip
        self._tmux("set-option", "-s", "escape-time", "0")

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-L", self._name, *words],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        if done.returncode:
            raise AssertionError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "-L", self._name, "kill-server"], capture_output=True, timeout=PATIENCE_S)
        folder = Path(os.environ.get("TMUX_TMPDIR", "/tmp")) / f"tmux-{os.getuid()}"
        (folder / self._name).unlink(missing_ok=True)

    def type(self, text: str) -> None:
        """Type `text` literally: names of keys in it have no meaning."""
        self._tmux("send-keys", "-l", text)

    def press(self, *keys: str) -> None:
        """Named keys: `Enter`, `Escape`, `C-s`, `M-x`."""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        """Return the text on the screen, without spaces at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p").split("\n")).rstrip()

    def pid(self) -> int:
        """Return the process id of the program."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def see(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """The screen, once it shows `text`."""
        try:
            return wait_for(lambda: seen if text in (seen := self.screen()) else None, text, patience_s)
        except AssertionError:
            raise AssertionError(f"never seen: {text}\n{self.screen()}") from None

    def picture(self, name: str, title: str) -> None:
        """The screen in its colours, as SVG, in build/pictures; in docs/, too, where that is asked for."""
        from rich.console import Console
        from rich.text import Text

        colours = self._tmux("capture-pane", "-e", "-p").rstrip("\n")
        with Path(os.devnull).open("w") as nowhere:
            console = Console(
                record=True, width=self.size[0], file=nowhere, force_terminal=True, color_system="truecolor"
            )
            console.print(Text.from_ansi(colours), end="")
            drawn = console.export_svg(title=title, unique_id="compactd")
        folders = [ROOT / "build" / "pictures"]
        if os.environ.get("COMPACTD_TEST_PICTURES") == "docs":
            folders.append(ROOT / "docs")
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.svg").write_text(drawn)


def program(name: str, *, install: str) -> str:
    """Return the path of a program that the set-up installs: next to this Python, otherwise on the PATH."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    found = shutil.which(name, path=places)
    assert found, f"{name} is missing: {install}"
    return found


def same_screen(look: Callable[[], str], path: Path) -> None:
    """Waits until the screen is the one that somebody once looked at and found good, kept in `path`.

    Numbers and the spaces around them do not count: sizes are estimates, which get better.
    """

    def shown() -> str:
        seen = re.sub(r"\b[0-9a-f]{16}\b", "ID", look())
        seen = re.sub(r" +[\d,.]+(?= |$)", " #", seen, flags=re.MULTILINE)
        return re.sub(r" +(?=[│╮╯]$)", " ", seen, flags=re.MULTILINE)

    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{shown()}\n", encoding="utf-8")
        raise AssertionError(f"{path.name} was not there; it is now: look at it, then run again")
    wanted = path.read_text(encoding="utf-8").rstrip("\n")
    try:
        wait_for(lambda: shown() == wanted, path.name)
    except AssertionError:
        assert shown() == wanted
