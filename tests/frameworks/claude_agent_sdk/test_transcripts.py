"""Transcripts on disk: processes, threads, kills, damage, keys of strangers."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore, transcript

KEY: Any = {"project_key": "project", "session_id": "session"}
HARD = [
    "../../x",
    "/etc/passwd",
    "..",
    ".",
    "",
    "a\0b",
    "C:\\x",
    "con",
    "x" * 10_000,
    "é" * 3_000,
    "\ud800",
    "a\nb",
    "Name",
    "name",
    "NAME",
    "n-ame",
    "*?[a]",
    " name ",
]


def entry(number: int, **more: Any) -> Any:
    return {"type": "x", "uuid": f"u{number}", "n": number, **more}


def open_files() -> int:
    """Return how many files this process has open; 0 where Linux does not say."""
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Run Python with compactd in a process of its own."""
    program = "import asyncio, os, sys, json\n" + textwrap.dedent(code)
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )


IMPORT = """
from compactd.integrations.frameworks.claude_agent_sdk import CompactdSessionStore
store = CompactdSessionStore(sys.argv[1])
key = {"project_key": "project", "session_id": "session"}
"""


@given(
    st.lists(
        st.tuples(*[st.sampled_from(HARD)] * 2, st.none() | st.sampled_from(HARD[:4] + HARD[5:])), unique=True
    )
)
@settings(max_examples=40, deadline=None)
async def test_keys_are_no_paths_and_are_kept_apart(
    tmp_path_factory: pytest.TempPathFactory, keys: list[tuple[str, str, str | None]]
) -> None:
    outside = tmp_path_factory.mktemp("keys")
    folder = outside / "in" / "store"
    store = CompactdSessionStore(folder)
    made: list[Any] = [
        {"project_key": project, "session_id": session, **({} if sub is None else {"subpath": sub})}
        for project, session, sub in keys
    ]
    for number, key in enumerate(made):
        await store.append(key, [entry(number)])
    for number, key in enumerate(made):
        assert await store.load(key) == [entry(number)]
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    assert len(names) == len({name.lower() for name in names})
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-./") for name in names)
    assert {path.name for path in outside.iterdir()} <= {"in"}
    for project in {key["project_key"] for key in made}:
        found = {one["session_id"] for one in await store.list_sessions(project)}
        assert found == {session for name, session, sub in keys if name == project and sub is None}
    for project, session in {(key["project_key"], key["session_id"]) for key in made}:
        subs = await store.list_subkeys({"project_key": project, "session_id": session})
        assert set(subs) == {
            sub for name, id_, sub in keys if (name, id_) == (project, session) and sub is not None
        }


async def test_files_are_private(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = CompactdSessionStore(tmp_path / "a" / "store")
        await store.append(KEY, [entry(1)])
        await store.append({**KEY, "subpath": "subagents/agent-1"}, [entry(2)])
        await store.list_session_summaries("project")
    finally:
        os.umask(before)
    for path in (tmp_path / "a").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


async def test_the_default_folder_is_in_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMPACTD_HOME", str(tmp_path / "home"))
    store = CompactdSessionStore()
    await store.append(KEY, [entry(1)])
    assert len(list((tmp_path / "home" / "claude-agent-sdk").rglob("*.jsonl"))) == 1
    monkeypatch.setenv("COMPACTD_HOME", str(tmp_path / "other"))
    assert await store.load(KEY) is None


async def test_an_id_that_another_process_stored_is_not_stored_again(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [entry(1), {"type": "title"}])
    code = (
        IMPORT
        + "asyncio.run(store.append(key, [{'type': 'x', 'uuid': 'u2', 'n': 2}, {'type': 'x', 'uuid': 'u1'}]))"
    )
    assert child(code, str(tmp_path)).wait() == 0
    await store.append(KEY, [entry(2), entry(3), entry(1), {"type": "title"}])
    assert await store.load(KEY) == [entry(1), {"type": "title"}, entry(2), entry(3), {"type": "title"}]


async def test_processes_and_stores_at_once_store_each_id_once(tmp_path: Path) -> None:
    code = (
        IMPORT
        + """
asyncio.run(store.load(key))
print("ready", flush=True)
sys.stdin.readline()
async def main():
    for number in range(200):
        mine = {"type": "mine", "by": sys.argv[2], "n": number}
        await store.append(key, [{"type": "x", "uuid": f"u{number}", "n": number}, mine])
asyncio.run(main())
"""
    )
    children = [child(code, str(tmp_path), str(number)) for number in range(3)]
    for each in children:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in children:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    assert [each.wait(60) for each in children] == [0, 0, 0]
    loaded: Any = await CompactdSessionStore(tmp_path).load(KEY)
    assert [one["n"] for one in loaded if one["type"] == "x"] == list(range(200))
    for by in "012":
        assert [one["n"] for one in loaded if one["type"] == "mine" and one["by"] == by] == list(range(200))


async def test_fifty_threads_with_loops_of_their_own(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work(number: int) -> None:
        async def main() -> None:
            store = CompactdSessionStore(tmp_path)
            for at in range(4):
                await store.append(KEY, [entry(at), {"type": "mine", "by": number, "n": at}])

        try:
            asyncio.run(main())
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert failed == []
    loaded: Any = await CompactdSessionStore(tmp_path).load(KEY)
    assert sorted(one["n"] for one in loaded if one["type"] == "x") == [0, 1, 2, 3]
    assert len(loaded) == 4 + 200
    for number in range(50):
        assert [one["n"] for one in loaded if one.get("by") == number] == [0, 1, 2, 3]


async def test_calls_at_once_are_stored_in_the_order_of_the_calls(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    await asyncio.gather(*(store.append(KEY, [entry(number)]) for number in range(200)))
    assert await store.load(KEY) == [entry(number) for number in range(200)]


async def test_what_the_caller_changes_later_is_not_stored(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    given = [entry(1)]
    call = asyncio.ensure_future(store.append(KEY, given))
    await asyncio.sleep(0)
    given[0]["n"] = "changed"
    await call
    assert await store.load(KEY) == [entry(1)]
    loaded: Any = await store.load(KEY)
    loaded[0]["n"] = "changed"
    assert await store.load(KEY) == [entry(1)]


async def test_a_call_that_is_cancelled_before_it_begins_stores_nothing(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    call = asyncio.ensure_future(store.append(KEY, [entry(1)]))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await store.append(KEY, [entry(2)])
    assert await store.load(KEY) == [entry(2)]


async def test_a_cancelled_call_leaves_the_store_usable(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    for number in range(50):
        call = asyncio.ensure_future(store.append(KEY, [entry(number)]))
        await asyncio.sleep(0.0005 * (number % 4))
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    await store.append(KEY, [entry(number) for number in range(50)])
    assert sorted(one["n"] for one in await store.load(KEY) or []) == list(range(50))  # type: ignore[typeddict-item]


def test_a_loop_after_another(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    before = set(threading.enumerate())
    for number in range(3):
        asyncio.run(store.append(KEY, [entry(number)]))
    assert asyncio.run(store.load(KEY)) == [entry(0), entry(1), entry(2)]
    left = set(threading.enumerate()) - before
    for each in left:
        each.join(30)  # a loop that has ended only tells its threads to end
    assert [each for each in left if each.is_alive()] == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_fork_while_threads_write(tmp_path: Path) -> None:
    code = (
        IMPORT
        + """
import threading
asyncio.run(store.load(key))  # the first call imports modules, which a fork must not interrupt
async def fill(first):
    for number in range(first, first + 80):
        await store.append(key, [{"type": "x", "uuid": f"u{number}"}])
threads = [threading.Thread(target=asyncio.run, args=(fill(first),)) for first in (0, 40, 80)]
for each in threads: each.start()
children = []
for number in range(8):
    pid = os.fork()
    if pid == 0:
        asyncio.run(store.append(key, [{"type": "x", "uuid": f"child{number}"}]))
        os._exit(0)
    children.append(pid)
assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
for each in threads: each.join()
loaded = asyncio.run(store.load(key))
assert len(loaded) == len({one["uuid"] for one in loaded}) == 168, len(loaded)
"""
    )
    assert child(code, str(tmp_path)).wait(60) == 0


async def test_no_descriptor_and_no_thread_is_left(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)

    async def use(number: int) -> None:
        key: Any = {**KEY, "session_id": f"s{number}"}
        await store.append(key, [entry(1)])
        await store.load(key)
        await store.list_session_summaries("project")
        if number % 2:
            await store.delete(key)

    await use(0)
    before = open_files()
    for number in range(1, 300):
        await use(number)
    assert open_files() <= before + 2
    assert len(transcript._known) <= transcript.MAX_KNOWN


# --- kills and damage -------------------------------------------------------------------------------------


async def test_a_killed_process_costs_no_stored_entry(tmp_path: Path) -> None:
    code = (
        IMPORT
        + """
async def main():
    for number in range(100_000):
        await store.append(key, [{"type": "x", "uuid": f"u{number}", "n": number, "text": "x" * 20_000}])
        print(number, flush=True)
asyncio.run(main())
"""
    )
    running = child(code, str(tmp_path))
    assert running.stdout is not None
    stored = -1
    for line in running.stdout:
        stored = int(line)
        if stored >= 20:
            running.send_signal(signal.SIGKILL)
            break
    stored = max([stored, *map(int, running.stdout.read().split())])
    running.wait()
    running.stdout.close()
    store = CompactdSessionStore(tmp_path)
    loaded: Any = await store.load(KEY)
    assert [one["n"] for one in loaded] == list(range(len(loaded)))
    assert len(loaded) in (stored + 1, stored + 2)
    await store.append(KEY, [entry(-1)])
    assert await store.load(KEY) == [*loaded, entry(-1)]


@given(st.integers(1, 400), st.booleans())
@settings(max_examples=60, deadline=None)
async def test_a_torn_end_is_removed_by_the_next_writer(
    tmp_path_factory: pytest.TempPathFactory, cut: int, is_new_process: bool
) -> None:
    folder = tmp_path_factory.mktemp("torn")
    store = CompactdSessionStore(folder)
    await store.append(KEY, [entry(number) for number in range(3)])
    (path,) = folder.rglob("*.jsonl")
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(max(0, len(data) - cut))
    if is_new_process:
        transcript._known.clear()
    whole = data[: max(0, len(data) - cut)].count(b"\n") - 1
    expected = [entry(number) for number in range(max(0, whole))]
    assert await store.load(KEY) == (expected or None)
    await store.append(KEY, [entry(number) for number in range(5)])
    assert await store.load(KEY) == [entry(number) for number in range(5)]
    assert path.read_bytes().endswith(b"\n")


async def test_damaged_lines_are_left_out_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [entry(1), entry(2)])
    (path,) = tmp_path.rglob("*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1], b"\xff\xfe not JSON\n", b"[" * 100_000 + b"\n", lines[2]]))
    assert await store.load(KEY) == [entry(1), entry(2)]
    assert "2 damaged lines" in caplog.text
    await store.append(KEY, [entry(2), entry(3)])
    assert await store.load(KEY) == [entry(1), entry(2), entry(3)]


async def test_a_file_of_another_session_is_neither_read_nor_changed(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [entry(1)])
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b'"session_id":"session"', b'"session_id":"stranger"'))
    before = path.read_bytes()
    transcript._known.clear()
    with pytest.raises(OSError, match="does not belong"):
        await store.load(KEY)
    with pytest.raises(OSError, match="does not belong"):
        await store.append(KEY, [entry(2)])
    assert path.read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for files")
def test_a_full_disk_fails_the_call_and_keeps_what_is_stored(tmp_path: Path) -> None:
    code = (
        IMPORT
        + """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
asyncio.run(store.append(key, [{"type": "x", "uuid": "u0"}]))
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
many = [{"type": "x", "uuid": f"u{number}", "text": "y" * 100} for number in range(1, 50)]
try:
    asyncio.run(store.append(key, many))
except OSError as error:
    print(error.errno)
assert len(asyncio.run(store.load(key))) == 1
resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
asyncio.run(store.append(key, [{"type": "x", "uuid": "u1"}]))
print(json.dumps([one["uuid"] for one in asyncio.run(store.load(key))]))
"""
    )
    running = child(code, str(tmp_path))
    said, _ = running.communicate(timeout=60)
    assert running.returncode == 0
    assert said.splitlines() == ["27", json.dumps(["u0", "u1"])]


# --- deleting -------------------------------------------------------------------------------------------


async def test_a_deleted_session_leaves_nothing_and_can_begin_again(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    sub: Any = {**KEY, "subpath": "subagents/agent-1"}
    await store.append(KEY, [entry(1, secret="swordfish")])
    await store.append(sub, [entry(1, secret="swordfish")])
    await store.list_session_summaries("project")
    await store.delete(KEY)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    # The ids are free again, for processes too that have read the old file.
    await store.append(KEY, [entry(1)])
    assert await store.load(KEY) == [entry(1)]
    assert await store.load(sub) is None


async def test_another_process_deleted_the_session_and_began_it_anew(tmp_path: Path) -> None:
    store = CompactdSessionStore(tmp_path)
    await store.append(KEY, [entry(1), entry(2)])
    assert (await store.list_session_summaries("project"))[0]["data"]["is_sidechain"] is False
    code = (
        IMPORT
        + """
async def main():
    await store.delete(key)
    about = {"type": "x", "customTitle": "New", "isSidechain": True}
    await store.append(key, [{**about, "uuid": f"new{number}"} for number in range(9)])
asyncio.run(main())
"""
    )
    assert child(code, str(tmp_path)).wait() == 0
    await store.append(KEY, [entry(1)])
    loaded: Any = await store.load(KEY)
    assert len(loaded) == 10
    assert loaded[-1] == entry(1)
    (summary,) = await store.list_session_summaries("project")
    assert summary["data"]["is_sidechain"] is True
    assert summary["data"]["custom_title"] == "New"
