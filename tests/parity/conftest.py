"""One daemon and one fake model provider for each module. Every test has its own sessions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.client import Daemon
from tests.support.loopback import Loopback
from tests.support.own_loop import environment


@pytest.fixture(scope="module")
def _provider() -> Iterator[Loopback]:
    with Loopback() as running:
        yield running


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory, _provider: Loopback) -> Iterator[Daemon]:
    env = {**environment("anthropic", _provider.base_url), **environment("openai", _provider.base_url)}
    with Daemon(tmp_path_factory.mktemp("specs") / "home", env=env) as running:
        yield running


@pytest.fixture
def server(_provider: Loopback) -> Loopback:
    """The model provider, without what an earlier test asked of it."""
    _provider.forget()
    return _provider


@pytest.fixture
def daemon(_shared: Daemon, server: Loopback) -> Daemon:
    """The daemon, whose providers are all `server`."""
    return _shared
