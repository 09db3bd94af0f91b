"""The fleet's database: a server, its synchronous standby, and relays between them and some of the nodes."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path

import psycopg

from compactd.storage.postgres.migrate import migrate
from tests.faults.fleet.audit import AUDIT
from tests.support.postgres import OWNER, PASSWORD, ROLE, Relay, Server, programs

_SETTINGS = (
    "max_connections = 150\nhot_standby = on\nwal_sender_timeout = 5s\nwal_keep_size = 1GB\nfsync = off"
)
"""Servers are killed here, machines are not: what a server has written to the kernel stays."""
_NAME = "fleet"


class Database:
    """Two servers, of which one is the other's synchronous standby. They may change places."""

    def __init__(self) -> None:
        bin_ = programs()
        assert bin_ is not None, "PostgreSQL is not installed (Debian: postgresql)"
        self._stack = ExitStack()
        folders = [
            Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="pg", dir="/tmp")))
            for _ in "12"
        ]
        self.primary = Server(folders[0], bin_, settings=_SETTINGS)
        self._stack.callback(lambda: self._stop(folders[0]))
        for role in (OWNER, ROLE):
            self.primary.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        self.primary.sql(f"CREATE DATABASE {_NAME} OWNER {OWNER}")
        migrate(self.primary.url(_NAME, OWNER), ROLE)
        for statement in AUDIT:
            self.sql(statement)
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.standby = Server(folders[1], bin_, primary=self.primary, settings=_SETTINGS)
        self._stack.callback(lambda: self._stop(folders[1]))
        self.primary.sql("SELECT pg_reload_conf()")
        self._folders = folders

    def relayed(self) -> tuple[str, list[Relay]]:
        """Return a URL with NAME for the node's name, whose connections go through relays, and these."""
        relays = []
        for server in (self.primary, self.standby):
            relays.append(Relay(server))
            self._stack.callback(relays[-1].close)
        return _url([relay.folder for relay in relays]), relays

    def url(self) -> str:
        """Return a URL with NAME for the node's name."""
        return _url(self._folders)

    def sql(self, statement: str, *given: object) -> list[tuple[object, ...]]:
        """Run a statement as the superuser, on the server that takes writes."""
        with psycopg.connect(self.primary.url(_NAME, "postgres"), autocommit=True) as connection:
            done = connection.execute(statement.encode(), given or None)
            return done.fetchall() if done.description else []

    async def restart(self, mode: str) -> None:
        """Stop the server that takes writes and start it again. `mode`: `fast`, or `immediate`: a crash."""
        await asyncio.to_thread(self.primary.stop, mode)
        await asyncio.to_thread(self.primary.start)

    async def fail_over(self) -> None:
        """Crash the server that takes writes, and let the standby take its place. Then make a new standby of
        the first one.
        """
        await asyncio.to_thread(self.primary.stop, "immediate")
        self.primary, self.standby = self.standby, self.primary
        await asyncio.to_thread(self.primary.promote)
        await asyncio.to_thread(self.standby.follow, self.primary)

    async def freeze_standby(self, seconds: float) -> None:
        """Stop the standby's processes for a time. Commits wait for it."""
        processes = self.standby.processes()
        _signal(processes, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        _signal(processes, signal.SIGCONT)

    def cut(self, name: str) -> None:
        """End all connections of a node at the server."""
        self.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", name)

    def close(self) -> None:
        """Stop everything, and remove it."""
        self._stack.close()

    def _stop(self, folder: Path) -> None:
        server = self.primary if self.primary.folder == folder else self.standby
        server.stop("immediate")


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError):  # a process of a server ends when its peer is gone
            os.kill(process, number)


def _url(folders: list[Path]) -> str:
    hosts = ",".join(map(str, folders))
    return (
        f"postgresql://{ROLE}:{PASSWORD}@/{_NAME}?host={hosts}&target_session_attrs=read-write"
        "&application_name=NAME"
    )
