"""Modules that handlers need later are imported in workers, never in the event loop's thread."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec import Raw, Struct

from compactd._runtime.lazy_imports import BackgroundImporter
from compactd.daemon.app import Daemon
from compactd.daemon.rpc.request import Request
from compactd.protocol.methods import METHODS

T = TypeVar("T")

SERVING = """
import sys, threading
from compactd.daemon.rpc.stdio import take_stdio

fds = take_stdio()
from compactd.daemon import app as daemon

loop, found = threading.current_thread(), []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is loop:
            found.append(name)

class Watched(daemon.Daemon):
    def call(self, method, params, request):
        reply = super().call(method, params, request)
        if not any(isinstance(one, Finder) for one in sys.meta_path):
            sys.meta_path.insert(0, Finder())
        return reply

daemon.Daemon = Watched
code = daemon.serve(fds)
with open(sys.argv[1], "w") as file:
    file.writelines(f"{name}\\n" for name in found)
sys.exit(code)
"""

SESSION: dict[str, object] = {"session_id": "s"}
NOBODY = {"id": "openai/gpt-4o", "base_url": "http://127.0.0.1:9/v1"}
MESSAGES = [
    {"role": "assistant" if number % 2 else "user", "content": f"{number} of the texts here " * 30}
    for number in range(40)
]
ASKED: list[tuple[str, dict[str, object]]] = [
    ("session/start", {**SESSION, "model": "gpt-4o", "snapshots": True}),
    ("session/append", {**SESSION, "messages": MESSAGES}),
    ("session/compact", {**SESSION, "strategy": "extract", "keep_recent": 500}),
    ("session/undo", SESSION),
    ("session/prune", SESSION),
    ("turn/begin", SESSION),
    ("turn/error", {**SESSION, "error": {"status": 400, "body": "prompt is too long: 9 tokens > 8 maximum"}}),
    ("model/set", {**SESSION, "model": NOBODY}),
    ("session/search", {"query": "texts"}),
    ("session/export", {**SESSION, "format": "openai"}),
    ("session/import", {"content": json.dumps(MESSAGES)}),
    ("session/redact", {**SESSION, "entry_ids": ["e1"]}),
    ("session/compact", {**SESSION, "strategy": "auto", "keep_recent": 500}),
    ("agent/prompt", {**SESSION, "text": "Go on."}),
    ("agent/abort", SESSION),
    ("session/close", SESSION),
    ("session/start", SESSION),
]


def test_the_loop_imports_nothing_of_the_daemon_behind_the_first_call(tmp_path: Path) -> None:
    file = tmp_path / "imported"
    env = {**os.environ, "COMPACTD_HOME": str(tmp_path / "home"), "OPENAI_API_KEY": "sk-test"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVING, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env
    ) as daemon:
        assert daemon.stdin is not None
        assert daemon.stdout is not None
        refused = [method for method, params in ASKED if not _is_done(daemon, method, params)]
        daemon.stdin.close()

        assert daemon.wait(60) == 0

    assert refused == []
    assert [name for name in file.read_text().split() if name.startswith("compactd.")] == []


def _is_done(daemon: subprocess.Popen[bytes], method: str, params: dict[str, object]) -> bool:
    assert daemon.stdin is not None
    assert daemon.stdout is not None
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    daemon.stdin.write(json.dumps(asked).encode() + b"\n")
    daemon.stdin.flush()
    while line := daemon.stdout.readline():
        answer = json.loads(line)
        if "id" in answer:
            return "result" in answer
    return False


class Importing:
    """A worker that imports when it is told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = asyncio.Event()

    async def in_worker(self, work: Callable[[], None]) -> None:
        self.asked += 1
        await self.go_on.wait()
        work()


async def test_a_module_is_imported_once_for_all_who_wait_for_it() -> None:
    worker = Importing()
    modules = BackgroundImporter(worker.in_worker)

    waiting = [asyncio.create_task(modules.load("json", "string")) for _ in range(3)]
    cancelled = waiting.pop()
    await asyncio.sleep(0)
    cancelled.cancel()
    worker.go_on.set()
    await asyncio.gather(*waiting)

    assert worker.asked == 2
    assert modules.are_loaded(("json", "string"))


async def test_an_import_that_failed_is_tried_again(tmp_path: Path) -> None:
    worker = Importing()
    worker.go_on.set()
    modules = BackgroundImporter(worker.in_worker)

    for _ in range(2):
        with pytest.raises(ModuleNotFoundError):
            await modules.load("of_the_test_that_is_nowhere")

    assert worker.asked == 2
    assert not modules.are_loaded(("of_the_test_that_is_nowhere",))


class Watched(Daemon):
    """Counts what is given to its workers."""

    asked = 0

    async def in_worker(self, work: Callable[[], T]) -> T:
        self.asked += 1
        return await super().in_worker(work)


def _unsent(method: str, params: Struct | Raw, droppable: bool = False) -> bool:
    return False


async def test_what_compactions_need_is_imported_behind_the_first_answer(tmp_path: Path) -> None:
    daemon = Watched({"COMPACTD_HOME": str(tmp_path)})
    method = METHODS["daemon/info"]
    request = Request(b"1", method.name, _unsent)

    daemon.call(method, method.params(), request)
    for _ in range(10):
        await asyncio.sleep(0)
    beside = daemon.asked
    for act in request.take_after():
        act()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.wait(others)

    assert beside == 0
    assert daemon.modules.are_loaded(("compactd.compaction.run", "compactd.compaction.read_ahead"))


def test_the_engine_of_compactions_alone_brings_no_numpy() -> None:
    script = "import sys, compactd.compaction.run; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", script], check=True, capture_output=True, text=True)

    assert done.stdout.split() == ["False"]
