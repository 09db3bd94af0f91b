"""A window of the real VS Code that does what a test tells it, step by step."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import threading
from pathlib import Path
from typing import Any

from tests.editors.terminal import wait_for
from tests.editors.vscode.house import HERE, SHOTS, House, modules, node

PATIENCE_S = 240.0


class Window:
    """One window. Its end is the end of the `with`."""

    def __init__(self, house: House, workspace: Path, name: str) -> None:
        self._said: queue.Queue[str] = queue.Queue()
        self._house = house
        self._process = subprocess.Popen(
            [node(), str(HERE / "drive/told.mjs")],
            env={
                **os.environ,
                "COMPACTD_EDITOR_MODULES": str(modules()),
                "COMPACTD_EDITOR_SHOTS": str(SHOTS),
                "COMPACTD_EDITOR_GIVEN": json.dumps({"url": house.url(workspace), "name": name}),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Window:
        self._answer()
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def do(self, deed: str, *given: str) -> Any:
        """Do something, as `told.mjs` names it. Return the result."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([deed, *given]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def see(self, text: str) -> str:
        """Return the conversation on the page, once it shows `text`."""
        seen = ""

        def look() -> str | None:
            nonlocal seen
            seen = str(self.do("text"))
            return seen if text in seen else None

        try:
            return wait_for(look, text)
        except AssertionError:
            logged = "".join(log.read_text(errors="replace")[-4000:] for log in self._house.logs())
            raise AssertionError(f"never seen: {text}\n{seen}\n{logged}") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._said.put(line)
        self._said.put("")

    def _answer(self) -> Any:
        said = ""
        while line := self._said.get(timeout=PATIENCE_S):
            if line.startswith('{"saw"'):
                return json.loads(line)["value"]
            said += line
        raise AssertionError(f"the window is gone:\n{said}")
