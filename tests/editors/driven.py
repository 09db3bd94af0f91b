"""An editor in a terminal whose state a test can query: the common part of Neovim and Emacs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

from tests.editors.terminal import Terminal, wait_for


class DrivenEditor:
    """One editor with its screen. Its end is the end of the `with`."""

    def __init__(self, terminal: Terminal, socket: Path) -> None:
        self.terminal = terminal
        self._socket = socket

    def __enter__(self) -> Self:
        try:
            wait_for(self._socket.exists, "the editor's socket")
        except AssertionError as error:
            shown = self.terminal.screen()
            self.terminal.__exit__()
            raise AssertionError(f"{error}\n{shown}") from None
        return self

    def __exit__(self, *more: object) -> None:
        self.terminal.__exit__(*more)

    def ask(self, code: str) -> Any:
        """Evaluate `code` in the editor's own language. Return the value, converted through JSON."""
        raise NotImplementedError

    def log(self) -> str:
        """The log of the extension."""
        raise NotImplementedError

    def until(self, code: str, what: str) -> Any:
        """Evaluate `code` until its value is true. Return the value."""
        try:
            return wait_for(lambda: self.ask(code), what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.terminal.screen()}\n{self.log()}") from None
