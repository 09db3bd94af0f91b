"""Gateways of OpenClaw. Each takes half a minute to start, and a gigabyte, so tests share them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.frameworks.node.driving import COMMAND, node
from tests.frameworks.openclaw.gateway import Gateway, packages
from tests.frameworks.openclaw.hosting import Host

LEAST_NODE = (24, 16)


def _node_version() -> tuple[int, ...]:
    try:
        text = subprocess.run([node(), "-v"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return (0,)
    return tuple(int(part) for part in text.strip().removeprefix("v").split("."))


collect_ignore = (
    [] if packages() is not None and _node_version() >= LEAST_NODE else ["test_gateway.py", "test_page.py"]
)


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[Gateway]:
    """With compactd, and OpenClaw's defaults."""
    with Gateway(tmp_path_factory.mktemp("compactd")) as started:
        yield started


@pytest.fixture(scope="session")
def checking(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[Gateway]:
    """With compactd, and OpenClaw's own check before each request. The wire is another one, and tool outputs
    are shortened."""
    config = {"agents": {"defaults": {"compaction": {"midTurnPrecheck": {"enabled": True}}}}}
    options = {"reduce": "default", "compaction": {"keep_recent_tokens": 2_000}}
    folder = tmp_path_factory.mktemp("checking")
    with Gateway(folder, config=config, options=options, api="openai-responses") as started:
        yield started


@pytest.fixture
def alone(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[Gateway]:
    """Without compactd."""
    config = {"agents": {"defaults": {"compaction": {"midTurnPrecheck": {"enabled": True}}}}}
    with Gateway(tmp_path_factory.mktemp("alone"), engine="legacy", config=config) as started:
        yield started


@pytest.fixture
def daemonless(tmp_path_factory: pytest.TempPathFactory, own_home: Path) -> Iterator[Gateway]:
    """With compactd's plugin, but without the program."""
    config = {"agents": {"defaults": {"compaction": {"midTurnPrecheck": {"enabled": True}}}}}
    options = {"command": ["/no/such/compactd", "serve"]}
    with Gateway(tmp_path_factory.mktemp("daemonless"), config=config, options=options) as started:
        yield started


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """The plugin without OpenClaw."""
    with Host(tmp_path / "data") as started:
        started.call("register", options={"command": COMMAND})
        yield started
