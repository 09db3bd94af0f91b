"""The daemon that all agents of a process share: threads, forks, a daemon that hangs or dies."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import pytest

from compactd.client import RpcError
from compactd.integrations.frameworks import engine as engines
from compactd.integrations.frameworks.engine import (
    Engine,
    SessionOptions,
    checked_level,
    close_engines,
    engine_of,
)
from compactd.integrations.frameworks.history import Setup
from tests.support.histories import history, turns, user

OPTIONS = SessionOptions("test")
SETUP = Setup(context_window=8_000)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("COMPACTD_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    yield
    close_engines()


def test_a_process_has_one_engine_for_each_command() -> None:
    assert engine_of() is engine_of(None)
    assert engine_of(("other",)) is not engine_of()


def test_fifty_threads_use_one_daemon_and_each_session_is_whole() -> None:
    engine = engine_of()

    def run(number: int) -> int:
        mirror = engine.mirror(f"test:{number % 10}:{number}", OPTIONS)
        messages = [user(f"Request {number}.")]
        for turn in range(3):
            messages += turns([turn], tokens=40)
            view = mirror.prepare(history(messages), SETUP)
            assert view is not None
            assert view.is_whole
        return engine.demand(lambda client: client.pid)

    with ThreadPoolExecutor(50) as pool:
        assert len(set(pool.map(run, range(50)))) == 1
    state = engine.mirror("test:3:43", OPTIONS).state()
    assert state.session_id == "test:3:43"


def test_threads_with_one_conversation_each_get_their_own_view() -> None:
    engine = engine_of()

    def run(number: int) -> bool:
        messages = [user("Shared request."), *turns([number], tokens=40)]
        views = [engine.mirror("test:1", OPTIONS).prepare(history(messages), SETUP) for _ in range(5)]
        return all(view is not None and list(view.items) == [0, 1, 2] for view in views)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))


def test_sessions_beyond_the_limit_are_closed_and_open_again() -> None:
    engine = engine_of()
    messages = [user("Hi."), *turns(range(2), tokens=20)]
    for number in range(engines.MAX_SESSIONS + 3):
        engine.mirror(f"test:{number}", SessionOptions("test", persist=number < 2)).prepare(
            history(messages), SETUP
        )
    with pytest.raises(RpcError, match="not open"):
        engine.demand(lambda client: client.agent_state(session_id="test:0"))
    again = engine.mirror("test:0", OPTIONS).prepare(history([*messages, user("More.")]), SETUP)
    assert again is not None
    assert again.is_whole


def test_a_daemon_that_does_not_answer_is_left_alone_for_a_while() -> None:
    hangs = (sys.executable, "-c", "import time; time.sleep(60)")
    engine = Engine(hangs)
    mirror = engine.mirror("test:1", SessionOptions("test", call_s=0.3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert mirror.prepare(history([user("Hi.")]), SETUP) is None
        begun = monotonic()
        for _ in range(100):
            assert mirror.prepare(history([user("Hi.")]), SETUP) is None
        assert monotonic() - begun < 0.3
    assert len(caught) == 1
    assert "no answer within" in str(caught[0].message)
    engine.close()


def test_a_daemon_that_dies_each_time_is_left_alone_for_a_while() -> None:
    dies = (sys.executable, "-c", "pass")
    mirror = Engine(dies).mirror("test:1", OPTIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert mirror.prepare(history([user("Hi.")]), SETUP) is None
        assert mirror.prepare(history([user("Hi.")]), SETUP) is None
    assert len(caught) == 1
    assert "the daemon ended with code 0" in str(caught[0].message)


def test_closing_twice_and_using_it_again_works() -> None:
    engine = engine_of()
    messages = [user("Hi.")]
    for _ in range(2):
        assert engine.mirror("test:1", OPTIONS).prepare(history(messages), SETUP) is not None
        engine.close()
        engine.close()


FORKED = """
import os
import warnings

from compactd.integrations.frameworks.engine import SessionOptions, engine_of
from compactd.integrations.frameworks.history import Setup
from tests.support.histories import history, turns, user

warnings.simplefilter("error", UserWarning)


def prepare(name, messages):
    mirror = engine_of().mirror(name, SessionOptions("test"))
    view = mirror.prepare(history(messages), Setup(context_window=8_000))
    assert view is not None and view.is_whole
    return engine_of().demand(lambda client: client.pid)


messages = [user("Hi."), *turns(range(2), tokens=20)]
daemon = prepare("test:1", messages)
child = os.fork()
if child == 0:
    own = prepare("test:2", messages)
    os._exit(0 if own != daemon else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
messages += turns([5], tokens=20)
assert prepare("test:1", messages) == daemon
print("done")
"""


def test_a_forked_process_has_its_own_daemon_and_leaves_its_parents_alone() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_the_daemon_ends_with_a_process_that_a_fork_outlives(tmp_path: Path) -> None:
    """Otherwise the child would keep the pipe open, and the daemon would wait for more requests."""
    script = textwrap.dedent("""
        import os, time
        from compactd.integrations.frameworks.engine import engine_of
        pid = engine_of().demand(lambda client: client.pid)
        if os.fork() == 0:
            os.close(1)
            os.close(2)
            time.sleep(30)
            os._exit(0)
        print(pid, flush=True)
        os._exit(0)
    """)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    daemon = int(done.stdout)
    end = monotonic() + 20
    while monotonic() < end and _is_running(daemon):
        threading.Event().wait(0.1)
    assert not _is_running(daemon)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_setting_that_does_not_exist_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match=r"there is no setting 'summarizer'; docs/settings.md"):
        SessionOptions("test", compaction={"summarizer": "x/y"})
    with pytest.raises(ValueError, match="keep_recent_tokens"):
        SessionOptions("test", compaction={"keep_recent_tokens": "many"})
    assert SessionOptions("test", compaction={"model": "x/y", "keep_recent_tokens": 8_000}).compaction


def test_a_level_that_does_not_exist_is_refused_at_once() -> None:
    assert checked_level("strong", ("off", "strong")) == "strong"
    with pytest.raises(ValueError, match="reduce must be one of off, strong, not 'sturdy'"):
        checked_level("sturdy", ("off", "strong"))
