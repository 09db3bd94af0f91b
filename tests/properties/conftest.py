"""Daemons with a fake model provider on loopback: one per module, or as many as a test needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Loopback
from tests.support.own_loop import environment

Spawn = Callable[..., Daemon]


def _pointed_at(provider: Loopback) -> dict[str, str]:
    return {**environment("anthropic", provider.base_url), **environment("openai", provider.base_url)}


@pytest.fixture(scope="module")
def _provider() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory, _provider: Loopback) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("regressions") / "home", env=_pointed_at(_provider)) as running:
        yield running


@pytest.fixture
def server(_provider: Loopback) -> Loopback:
    """The model provider, without what an earlier test asked of it."""
    _provider.forget()
    return _provider


@pytest.fixture
def daemon(_shared: Daemon, server: Loopback) -> Daemon:
    """The module's daemon; each test has sessions of its own."""
    return _shared


@pytest.fixture
def spawn(tmp_path: Path, server: Loopback) -> Iterator[Spawn]:
    """Starts daemons of this test alone, all on one data folder."""
    with ExitStack() as stack:

        def make(env: dict[str, str] | None = None) -> Daemon:
            own = {**_pointed_at(server), **(env or {})}
            return stack.enter_context(Daemon(tmp_path / "home", env=own))

        yield make
