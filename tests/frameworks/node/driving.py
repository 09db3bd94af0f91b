"""The Node package, built from this checkout, and agents in Node that a test drives line by line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from tests.frameworks.environment import ROOT, variables
from tests.frameworks.support.talk import TOOLS

HERE = Path(__file__).resolve().parent
PACKAGE = ROOT / "integrations" / "node"
COMMAND = [sys.executable, "-m", "compactd", "serve"]
"""The daemon of this checkout."""
TOOL_LIST = [{"name": tool.__name__, "description": tool.__doc__} for tool in TOOLS]
Json = dict[str, Any]
UseTool = Callable[[str, Json], str]


def packages() -> Path | None:
    """Return the folder in which setup.sh installed the npm packages; None if it did not."""
    key = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()[:12]
    cache = os.environ.get("COMPACTD_TEST_CACHE") or Path.home() / ".cache" / "compactd-tests"
    place = Path(cache) / f"node-frameworks-{key}"
    return place if (place / ".installed").exists() else None


@cache
def node() -> str:
    """Return the program `node`: of the tests' environment, or from the PATH. PyPI's `node` is a program in
    Python that starts the real one, so that one is asked where it is."""
    found = shutil.which("node", path=variables()["PATH"]) or "node"
    return subprocess.check_output([found, "-p", "process.execPath"], text=True).strip()


def built() -> Path:
    """Return a folder that has the package of this checkout in `node_modules`, next to the frameworks, and
    the programs of `drive`. It is built once for each state of the sources."""
    place = packages()
    assert place is not None
    sources = sorted([*PACKAGE.glob("src/**/*.ts"), *PACKAGE.glob("*.json"), *HERE.glob("drive/*.mjs")])
    digest = hashlib.sha256()
    for source in sources:
        digest.update(str(source.relative_to(ROOT)).encode() + b"\0" + source.read_bytes())
    done = place / "builds" / digest.hexdigest()[:16]
    if done.exists():
        return done
    done.parent.mkdir(exist_ok=True)
    making = Path(tempfile.mkdtemp(dir=done.parent))
    modules = making / "node_modules"
    modules.mkdir()
    for each in (place / "node_modules").iterdir():
        (modules / each.name).symlink_to(each)
    shutil.copytree(PACKAGE / "src", modules / "compactd" / "src")
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(PACKAGE / name, modules / "compactd")
    compiler = place / "node_modules" / "typescript" / "bin" / "tsc"
    subprocess.run([node(), str(compiler), "-p", str(modules / "compactd")], check=True)
    shutil.copytree(HERE / "drive", making, dirs_exist_ok=True)
    try:
        making.rename(done)
    except OSError:  # another worker was first
        shutil.rmtree(making)
    return done


def descendants(pid: int) -> list[int]:
    """Return the processes that a process started, and that these started."""
    found = [pid]
    for each in found:
        with suppress(OSError):  # it may have ended
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found[1:]


def command_of(pid: int) -> bytes:
    """Return the command of a process; nothing if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def daemons_of(pid: int) -> list[int]:
    """Return the daemons that a process started, or a child of it."""
    return [each for each in descendants(pid) if b"compactd\0serve" in command_of(each)]


class NodeError(Exception):
    """What the agent threw."""


class NodeAgent:
    """A process of Node that runs agents of a framework. Use it with `with`."""

    def __init__(self, host: str, *, env: Mapping[str, str] | None = None) -> None:
        """`host`: the module in `drive` that has the methods."""
        self._process = subprocess.Popen(
            [node(), str(built() / "main.mjs"), host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**variables(), **(env or {})},
        )
        self._next = 0
        self._answers: dict[int, Json] = {}
        self.warnings: list[str] = []
        self.use_tool: UseTool = lambda name, given: next(tool for tool in TOOLS if tool.__name__ == name)(
            given["number"]
        )

    def __enter__(self) -> NodeAgent:
        return self

    def __exit__(self, *_: object) -> None:
        # The end of its input ends it.
        self._process.communicate(timeout=60)

    def call(self, method: str, **params: Any) -> Any:
        """Return a method's result. Tools that it calls are answered meanwhile."""
        return self.finish(self.send(method, **params))

    def send(self, method: str, **params: Any) -> int:
        """Begin a call; `finish` returns its result."""
        self._next += 1
        self._write({"id": self._next, "method": method, "params": params})
        return self._next

    def finish(self, id_: int) -> Any:
        """Return the result of the call `id_`. Those of others are kept."""
        assert self._process.stdout is not None
        while id_ not in self._answers:
            line = self._process.stdout.readline()
            if not line:
                raise NodeError(f"the program ended with {self._process.wait()}")
            frame = json.loads(line)
            if "warning" in frame:
                self.warnings.append(f"{frame['warning']}: {frame['message']}")
            elif "call" in frame:
                output = self.use_tool(frame["name"], frame["arguments"])
                self._write({"call": frame["call"], "output": output})
            else:
                self._answers[frame["id"]] = frame
        answer = self._answers.pop(id_)
        if "error" in answer:
            raise NodeError(answer["error"])
        return answer["result"]

    def daemons(self) -> list[int]:
        """Return the processes of its daemons."""
        return daemons_of(self._process.pid)

    def kill_daemons(self) -> None:
        """Kill its daemons."""
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)

    def _write(self, frame: Json) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frame) + "\n")
        self._process.stdin.flush()
