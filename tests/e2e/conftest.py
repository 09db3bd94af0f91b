"""Daemons for the tests of this folder. Each test has its own data folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.sharing import own_sockets
from tests.support.talk import CHARS4, assistant, user

Spawn = Callable[..., Daemon]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The data folder of this test's daemons."""
    return tmp_path / "home"


@pytest.fixture
def sockets() -> Iterator[dict[str, str]]:
    """Variables with which `compactd attach` starts a daemon of this test's own."""
    with own_sockets() as env:
        yield env


@pytest.fixture
def spawn(home: Path) -> Iterator[Spawn]:
    """Starts daemons, on this test's data folder if no other is named."""
    with ExitStack() as stack:

        def make(folder: Path | None = None, **options: object) -> Daemon:
            return stack.enter_context(Daemon(folder or home, **options))  # type: ignore[arg-type]

        yield make


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Daemon]]:
    with ExitStack() as stack:
        running: list[Daemon] = []

        def get() -> Daemon:
            if not running or running[-1].process.poll() is not None:
                home = tmp_path_factory.mktemp("shared") / "home"
                running.append(stack.enter_context(Daemon(home)))
            return running[-1]

        yield get


@pytest.fixture
def daemon(_shared: Callable[[], Daemon]) -> Daemon:
    """A daemon that a module's tests share, each with sessions of its own: starting one takes longer than
    most tests do."""
    return _shared()


@pytest.fixture
def session(daemon: Daemon) -> str:
    """A session with two messages, the second with the id `m2`."""
    name = str(daemon.call("session/start", compaction=CHARS4)["session_id"])
    daemon.call("session/append", session_id=name, messages=[user(5), assistant(5, id="m2")])
    return name
