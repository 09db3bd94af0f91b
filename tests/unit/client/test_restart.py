"""Both Python clients if their daemon dies while they use it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from msgspec import Raw

from compactd.client import AsyncClient, Client, DaemonGone, Event, Interrupted
from compactd.client.restart import MAX_RESTARTS

MORTAL = """
import os, subprocess, sys
from pathlib import Path
flag = Path(sys.argv[1])
daemon = subprocess.Popen([sys.executable, "-m", "compactd", "serve"], stdin=subprocess.PIPE)
while some := os.read(0, 65536):
    if b"session/compact" in some and not flag.exists():
        flag.touch()
        daemon.kill()
        break
    daemon.stdin.write(some)
    daemon.stdin.flush()
daemon.stdin.close()
daemon.wait()
"""
"""The real daemon, which dies of the first compaction it is asked for, once."""

FORGETFUL = """
import os, subprocess, sys, threading
from pathlib import Path
flag = Path(sys.argv[1])
pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
daemon = subprocess.Popen([sys.executable, "-m", "compactd", "serve"], **pipes)
def pump():
    while some := os.read(daemon.stdout.fileno(), 65536):
        if not flag.exists() and b"session_id" in some:
            flag.touch()
            daemon.kill()
            os._exit(1)
        os.write(1, some)
threading.Thread(target=pump, daemon=True).start()
while some := os.read(0, 65536):
    daemon.stdin.write(some)
    daemon.stdin.flush()
daemon.stdin.close()
daemon.wait()
"""
"""The real daemon, which dies once: after it started a session, before the client has the answer."""

DYING = """
import sys
sys.stdin.buffer.readline()
"""
"""Reads one line of what it is asked, and is gone."""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COMPACTD_HOME": str(tmp_path)}


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def texts(messages: tuple[Raw, ...]) -> list[str]:
    return [json.loads(bytes(message))["content"] for message in messages]


def killed(client: Client | AsyncClient) -> None:
    os.kill(client.pid, signal.SIGKILL)


def test_a_session_goes_on_in_a_new_daemon_with_all_that_was_acknowledged(env: dict[str, str]) -> None:
    seen: list[Event] = []

    with Client(env=env, restarts=True, on_event=seen.append) as client:
        first_pid = client.pid
        started = client.session_start(session_id="s")
        client.session_append(session_id="s", messages=[user("one")])
        killed(client)
        appended = client.session_append(session_id="s", messages=[user("two")])
        context = client.session_context(session_id="s")
        second_pid = client.pid

    assert not started.resumed
    assert (first_pid != second_pid, len(appended.entry_ids)) == (True, 1)
    assert texts(context.messages) == ["one", "two"]
    [resumed] = [event for event in seen if event.type == "client_resumed"]
    assert (resumed.session_id, resumed.fields["message_count"]) == ("s", 1)


def test_what_was_sent_and_not_answered_is_kept_once(env: dict[str, str]) -> None:
    with Client(env=env, restarts=True) as client:
        client.session_start(session_id="s")
        sent = [user("one")]
        first = client.session_append(session_id="s", messages=sent)
        message = client.session_history(session_id="s").entries[0].message
        killed(client)
        again = client.session_append(session_id="s", messages=[message])

    assert (again.entry_ids, len(again.duplicates)) == (first.entry_ids, 1)


def test_what_may_not_be_done_twice_is_told_and_the_new_daemon_has_the_session(
    env: dict[str, str], tmp_path: Path
) -> None:
    mortal = (sys.executable, "-c", MORTAL, str(tmp_path / "died"))
    with Client(mortal, env={**os.environ, **env}, restarts=True) as client:
        client.session_start(session_id="s")
        client.session_append(session_id="s", messages=[user("one")])
        with pytest.raises(Interrupted, match="was restarted"):
            client.session_compact(session_id="s")
        state = client.agent_state(session_id="s")

    assert state.message_count == 1


def test_a_session_whose_start_was_not_answered_is_started_once(env: dict[str, str], tmp_path: Path) -> None:
    command = (sys.executable, "-c", FORGETFUL, str(tmp_path / "flag"))
    with Client(command, env=env, restarts=True) as client:
        started = client.session_start(title="one")
        rows = client.session_list().sessions

    assert [row.session_id for row in rows] == [started.session_id]


def test_a_session_whose_deletion_was_not_answered_is_deleted(env: dict[str, str], tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    with Client((sys.executable, "-c", FORGETFUL, str(flag)), env=env, restarts=True) as client:
        client.session_start(session_id="s")
        flag.unlink()
        client.session_delete(session_id="s")

        assert client.session_list().sessions == ()


def test_a_session_that_was_only_in_memory_is_gone_and_the_others_are_not(env: dict[str, str]) -> None:
    with Client(env=env, restarts=True) as client:
        client.session_start(session_id="stored")
        client.session_start(session_id="memory", persist=False)
        killed(client)
        listed = client.session_list()

    assert [session.session_id for session in listed.sessions] == ["stored"]


def test_a_daemon_that_always_dies_is_not_started_for_ever() -> None:
    with Client((sys.executable, "-c", DYING), restarts=True) as client:
        for _ in range(MAX_RESTARTS + 1):
            with pytest.raises(DaemonGone):
                client.daemon_ping()


def test_without_restarts_a_dead_daemon_stays_dead(env: dict[str, str]) -> None:
    with Client(env=env) as client:
        client.daemon_ping()
        killed(client)
        with pytest.raises(DaemonGone):
            client.daemon_ping()
        with pytest.raises(DaemonGone):
            client.daemon_ping()


async def test_the_asynchronous_client_goes_on_where_its_daemon_died(env: dict[str, str]) -> None:
    async with AsyncClient(env=env) as client:
        await client.session_start(session_id="s")
        await client.session_append(session_id="s", messages=[user("one")])
        killed(client)
        await client.session_append(session_id="s", messages=[user("two")])
        context = await client.session_context(session_id="s")
        types = [(await anext(client.events())).type for _ in range(5)]

    assert texts(context.messages) == ["one", "two"]
    appended = ["message_appended", "usage_update"]
    assert types == [*appended, "client_resumed", *appended]


async def test_requests_that_are_sent_at_once_are_sent_again_if_that_does_no_harm(
    env: dict[str, str],
) -> None:
    appends = [
        ("session/append", {"session_id": "s", "messages": [user("one")]}),
        ("session/append", {"session_id": "s", "messages": [user("two")]}),
    ]
    async with AsyncClient(env=env) as client:
        await client.session_start(session_id="s")
        os.kill(client.pid, signal.SIGKILL)
        await client.ask_all(appends)
        context = await client.session_context(session_id="s")
        os.kill(client.pid, signal.SIGSTOP)
        begun = asyncio.ensure_future(client.ask_all([("turn/begin", {"session_id": "s"}), *appends]))
        await asyncio.sleep(0.05)
        os.kill(client.pid, signal.SIGKILL)
        with pytest.raises(Interrupted):
            await begun

    assert texts(context.messages) == ["one", "two"]


def test_requests_whose_answers_are_read_later_follow_the_same_rules(env: dict[str, str]) -> None:
    appends = [
        ("session/append", {"session_id": "s", "messages": [user("one")]}),
        ("session/append", {"session_id": "s", "messages": [user("two")]}),
    ]
    with Client(env=env, restarts=True) as client:
        client.session_start(session_id="s")
        os.kill(client.pid, signal.SIGSTOP)
        pending = client.send_all(appends)
        os.kill(client.pid, signal.SIGKILL)
        assert len(pending.wait()) == 2
        os.kill(client.pid, signal.SIGSTOP)
        begun = client.send_all([("turn/begin", {"session_id": "s"}), *appends])
        os.kill(client.pid, signal.SIGKILL)
        with pytest.raises(Interrupted):
            begun.wait()
        context = client.session_context(session_id="s")

    assert texts(context.messages) == ["one", "two"]


async def test_many_requests_that_wait_when_it_dies_are_all_answered(env: dict[str, str]) -> None:
    async with AsyncClient(env=env) as client:
        await client.session_start(session_id="s")
        os.kill(client.pid, signal.SIGSTOP)
        waiting = [
            asyncio.create_task(client.session_append(session_id="s", messages=[user(str(number))]))
            for number in range(20)
        ]
        await asyncio.sleep(0)
        killed(client)
        answers = await asyncio.gather(*waiting)
        context = await client.session_context(session_id="s")

    assert len({answer.entry_ids for answer in answers}) == 20
    assert sorted(texts(context.messages), key=int) == [str(number) for number in range(20)]


async def test_events_end_when_the_client_is_closed(env: dict[str, str]) -> None:
    client = AsyncClient(env=env)
    await client.start()
    taken = asyncio.create_task(_all_of(client))
    await client.daemon_ping()

    code = await client.close()

    assert (code, await taken) == (0, [])


async def test_a_cancelled_request_is_cancelled_at_the_daemon_and_the_next_is_answered(
    env: dict[str, str],
) -> None:
    async with AsyncClient(env=env) as client:
        os.kill(client.pid, signal.SIGSTOP)
        asked = asyncio.create_task(client.daemon_ping())
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        os.kill(client.pid, signal.SIGCONT)
        answered = await client.daemon_info()

    assert answered.pid > 0


async def test_a_request_without_an_answer_is_given_up(env: dict[str, str]) -> None:
    async with AsyncClient((sys.executable, "-c", "import sys; sys.stdin.buffer.read()")) as client:
        with pytest.raises(TimeoutError, match="daemon/ping"):
            await client.daemon_ping(timeout_s=0.05)


async def _all_of(client: AsyncClient) -> list[Event]:
    return [event async for event in client.events()]
