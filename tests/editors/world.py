"""The environment of an editor's test: a home, a workspace, the daemon's command, a scripted model."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.editors.terminal import program, wait_for
from tests.support.loopback import Answer, Call

ROOT = Path(__file__).parents[2]
EDITORS = ROOT / "editors"
SESSION = ROOT / "examples" / "session.jsonl"

RIGHT_TO_LEFT = "\u202e"
HOSTILE_TITLE = f"<img src=x onerror=alert(1)>\x1b]0;owned\x07\x1b[31m%#Error#%{{1+1}} {RIGHT_TO_LEFT}txt.exe"
"""HTML, an escape that sets a title, one that colours, what a status line would evaluate, a turned name."""

WINDOW = 6_000
"""Small, so that a gauge can be seen to rise."""


@dataclass(frozen=True)
class World:
    """The files of a test."""

    home: Path
    """The home folder of the user and of the daemon."""
    workspace: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of an editor: nothing of the person who runs the tests."""
        bin_dir = str(Path(sys.executable).parent)
        return {
            "HOME": str(self.home),
            "PATH": f"{bin_dir}:{os.environ['PATH']}",
            "COMPACTD_HOME": str(self.home / "sessions"),
            "OPENAI_API_KEY": "key-of-the-test",
            "VIRTUAL_ENV": "",
            **{
                f"XDG_{name}_HOME": str(self.home / name.lower())
                for name in ("CONFIG", "DATA", "STATE", "CACHE")
            },
        }


def make_world(folder: Path, workspace: str = "work") -> World:
    """A new one. Its workspace holds one small module."""
    world = World(home=folder / "home", workspace=folder / workspace)
    world.home.mkdir(parents=True, mode=0o700)
    world.workspace.mkdir(parents=True)
    (world.workspace / "loader.py").write_text(
        "CACHE = {}\n\n\ndef load(path):\n    return CACHE.get(path) or read(path)\n"
    )
    return world


def daemon_command() -> str:
    """The real daemon, as it is installed beside these tests."""
    return program("compactd", install="pip install -e .")


def edit_call(old: str, new: str) -> Call:
    """The model wants `loader.py` changed."""
    return Call("edit_file", json.dumps({"path": "loader.py", "old_text": old, "new_text": new}), "call_edit")


DAY = [
    Answer(
        text="I look at the loader first.",
        calls=(Call("read_file", '{"path": "loader.py"}', "call_read"),),
        count_input=True,
    ),
    Answer(
        text="CACHE.get answers None for an empty file, so `load` reads it anew. A sentinel mends that.\n"
        + "\n".join(f"Note {n}: the cache is asked before the disk is, entry {n}." for n in range(60)),
        count_input=True,
        output_tokens=1043,
    ),
    Answer(
        text="I change the lookup.",
        calls=(edit_call("CACHE.get(path) or read(path)", "CACHE[path] if path in CACHE else read(path)"),),
        count_input=True,
    ),
    Answer(
        text="Done: an empty file is kept now.\n"
        + "\n".join(f"Check {n}: nothing else reads the cache, module {n}." for n in range(60)),
        count_input=True,
        output_tokens=849,
    ),
    Answer(text="We mended the cache of the `loader`, and **nothing** else.", count_input=True),
]
"""The model's answers in the test of a typical day: it reads, answers at length, edits, answers again."""


def model(base_url: str) -> dict[str, str]:
    """The model's parts, for `session/start`."""
    return {"provider": "openai-chat", "id": "gpt-4o", "base_url": f"{base_url}/v1"}


def kill_and_wait(pid: int) -> None:
    """The daemon is no more."""
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid), f"the end of {pid}")


def is_alive(pid: int) -> bool:
    """Return whether the process runs. A zombie does not."""
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def fake_daemon(folder: Path, body: str) -> Path:
    """A program that is no good daemon: `body` is its Python; it has `answer(id, result)`, `requests()`."""
    path = folder / "bad daemon"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, sys, time\n"
        "def answer(id, result):\n"
        "    body = json.dumps({'jsonrpc': '2.0', 'id': id, 'result': result}).encode()\n"
        "    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)\n"
        "    sys.stdout.buffer.flush()\n"
        "def requests():\n"
        "    while True:\n"
        "        length = 0\n"
        "        while (line := sys.stdin.buffer.readline()).strip():\n"
        "            if line.lower().startswith(b'content-length'):\n"
        "                length = int(line.split(b':')[1])\n"
        "        if not length:\n"
        "            return\n"
        "        yield json.loads(sys.stdin.buffer.read(length))\n" + body
    )
    path.chmod(0o755)
    return path


def initialize_answer(version: str) -> str:
    """Python of a daemon that speaks protocol `version` and nothing else."""
    return (
        "for request in requests():\n"
        "    if request.get('method') == 'initialize':\n"
        "        answer(request['id'], {'capabilities': {'experimental': {'compactd':\n"
        f"            {{'protocol_version': '{version}', 'methods': []}}}}}},\n"
        "            'serverInfo': {'name': 'compactd', 'version': '0.0.1'}})\n"
        "    elif 'id' in request:\n"
        "        answer(request['id'], {})\n"
    )


BAD_DAEMONS = {
    "garbage": "print('this is no protocol', flush=True)\ntime.sleep(60)\n",
    "hangs": "time.sleep(60)\n",
    "ends": "print('cannot begin: no such thing', file=sys.stderr)\nsys.exit(3)\n",
    "old": initialize_answer("0.4"),
    "stranger": (
        "for request in requests():\n"
        "    if 'id' in request:\n"
        "        answer(request['id'], {'capabilities': {}, 'serverInfo': {'name': 'other'}})\n"
    ),
}
"""Each with what a person must be told: see the tests."""


FLOOD = (
    initialize_answer("1.0").replace("answer(request['id'], {})", "pass")
    + """
    method = request.get('method')
    usage = {'current_context_tokens': 10, 'context_window': 100, 'percent': 10, 'threshold_tokens': 80,
             'context_window_confidence': 'fact', 'current_context_source': 'measured', 'epoch': 1}
    if method == 'session/start':
        answer(request['id'], {'session_id': 's', 'seq': 0, 'token_usage': usage, 'message_count': 0,
                               'read_only': False, 'resumed': False, 'warnings': []})
    elif method == 'agent/state':
        answer(request['id'], {'session_id': 's', 'status': 'compacting', 'message_count': 1,
                               'token_usage': usage, 'budget': {}, 'compaction': {}})
    elif method == 'session/undo':
        for n in range(2000):
            body = json.dumps({'jsonrpc': '2.0', 'method': 'agent/event', 'params': {
                'session_id': 's', 'seq': n + 1, 'type': 'compaction_progress', 'compaction_id': 'c1',
                'phase': 'summarize', 'fraction': n / 2000, 'delta': 'word '}}).encode()
            sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
            if n % 10 == 9:
                sys.stdout.buffer.flush()
                time.sleep(0.01)
        answer(request['id'], {'message_count': 1, 'token_usage': usage})
"""
)
"""A daemon that answers `session/undo` with 1,000 events a second for two seconds."""


def copied_session(world: World) -> Path:
    """A session of another agent, in the workspace."""
    path = world.workspace / "100% of a session #1.jsonl"
    shutil.copy(SESSION, path)
    return path
