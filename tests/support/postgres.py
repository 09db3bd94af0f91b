"""A PostgreSQL server for tests: one cluster per test process, on a socket in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

OWNER, ROLE, PASSWORD = "owner", "daemon", "hunter2-of-the-database"
"""`OWNER` owns the tables. `ROLE` is what nodes use: it owns nothing and is no superuser."""
SOCKET = ".s.PGSQL.5432"
"""The name of a server's socket, in the folder that a URL names as the host."""
READY = b"Z\0\0\0\5I"
"""The last message of a reply: the transaction has ended, and the server waits for a statement."""


def programs() -> Path | None:
    """The folder of the server's programs, the newest version; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return None if on_path is None else Path(on_path).parent


class Server:
    """A running server. `url(role)` is the address of a database in it."""

    def __init__(
        self, folder: Path, bin_: Path, *, primary: Server | None = None, settings: str = ""
    ) -> None:
        """Create and start a server. With `primary`, it is a standby of that one. `settings`: more lines of
        postgresql.conf.
        """
        self.folder = folder
        self._bin = bin_
        self._settings = settings
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, "postgres", "postgres")
        if primary is None:
            self._run(
                "initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"
            )
            self._configure()
            self.start()
        else:
            self.follow(primary)

    def follow(self, primary: Server) -> None:
        """Become a standby of `primary`, with a copy of what it has. What this server had is removed."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        to, of = f"{self.folder}/data", str(primary.folder)
        self._run("pg_basebackup", "-D", to, "-h", of, "-U", "postgres", "-R", "-c", "fast", "--no-sync")
        self._configure()
        self.start()

    def promote(self) -> None:
        """Stop to be a standby, and take writes."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "promote")

    def processes(self) -> list[int]:
        """Return the ids of its processes, the one that starts the others first."""
        first = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def _configure(self) -> None:
        with (self.folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nmax_connections = 60\n"
                f"shared_buffers = 32MB\nlog_min_messages = fatal\n{self._settings}\n"
            )

    def start(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")

    def url(self, database: str, role: str = ROLE) -> str:
        return url_of(self.folder, database, role)

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser."""
        import psycopg

        with psycopg.connect(self.url(database, "postgres"), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

    def disconnect(self, database: str) -> None:
        """End the connections of nodes to a database, so that they make new ones."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            f" WHERE usename = '{ROLE}' AND datname = '{database}'"
        )

    def new_database(self) -> str:
        """A database with the schema, owned by `OWNER`; gives back its name."""
        from compactd.storage.postgres.migrate import migrate

        name = f"d{secrets.token_hex(4)}"
        self.sql(f"CREATE DATABASE {name} OWNER {OWNER}")
        migrate(self.url(name, OWNER), ROLE)
        return name

    def copy(self, database: str, into: str) -> None:
        """Dump a database with pg_dump, and restore it into an empty one."""
        where = ["-h", str(self.folder), "-U", "postgres"]
        dump = subprocess.run([self._bin / "pg_dump", *where, database], capture_output=True, check=True)
        subprocess.run(
            [self._bin / "psql", *where, "-q", "-v", "ON_ERROR_STOP=1", into],
            input=dump.stdout,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def drop(self, database: str) -> None:
        self.sql(f"DROP DATABASE {database} WITH (FORCE)")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, str(self._bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            cwd="/",
            timeout=60,
        )
        assert done.returncode == 0, (program, arguments)


def url_of(folder: Path, database: str, role: str) -> str:
    return f"postgresql://{role}:{PASSWORD}@/{database}?host={folder}"


class _Cut(NamedTuple):
    """What a relay cuts."""

    sql: bytes
    is_stored: bool
    refuse: bool


class _Relayed:
    """A connection through a relay."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.sent = b""
        """The last bytes from the client: a piece of SQL may come in two parts."""
        self.cut: _Cut | None = None
        """Set while the server works on the last thing that it gets. Its reply is kept from the client."""
        self.reply = b""

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Relay:
    """Relays the bytes between clients and a server, and cuts a connection when it is told to."""

    def __init__(self, server: Server) -> None:
        self.cuts = 0
        """How many connections were cut."""
        self._to = str(server.folder / SOCKET)
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.folder / SOCKET))
        self._listener.listen()
        self._relayed: list[_Relayed] = []
        self._cut: _Cut | None = None
        self._cuts_all = False
        self.is_frozen = False
        """While it is true, nothing goes through, and nobody is told."""
        self._refuses = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def url(self, database: str, role: str = ROLE) -> str:
        return url_of(self.folder, database, role)

    def cut(self, sql: str, *, is_stored: bool, refuse: bool = False) -> None:
        """Cut the next connection whose client sends this piece of SQL. If `is_stored`, the server carries it
        out first, and only its reply is lost; or else the server never gets it. With `refuse`, refuse new
        connections afterwards.
        """
        self._cut = _Cut(sql.encode(), is_stored, refuse)

    def cut_all(self) -> None:
        """Cut all connections."""
        self._cuts_all = True

    def accept(self) -> None:
        """Accept new connections again."""
        self._refuses = False

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for one in self._relayed:
            one.close()
        self._listener.close()
        shutil.rmtree(self.folder)

    def _run(self) -> None:
        while not self._stop.is_set():
            if self._cuts_all:
                self._cuts_all = False
                for one in self._relayed:
                    one.close()
                self._relayed.clear()
            if self.is_frozen:
                self._stop.wait(0.02)
                continue
            ends = {end: one for one in self._relayed for end in (one.client, one.server)}
            ready, _, _ = select.select([self._listener, *ends], [], [], 0.05)
            for end in ready:
                if end is self._listener:
                    self._connect()
                elif (one := ends[end]) in self._relayed and not self._relay(one, end):
                    self._relayed.remove(one)
                    one.close()

    def _connect(self) -> None:
        one = _Relayed(self._listener.accept()[0], socket.socket(socket.AF_UNIX))
        try:
            if self._refuses:
                raise ConnectionRefusedError
            one.server.connect(self._to)
        except OSError:
            one.close()
        else:
            self._relayed.append(one)

    def _relay(self, one: _Relayed, end: socket.socket) -> bool:
        """Relay what came from one end. Return false if the connection must be closed."""
        try:
            data = end.recv(65536)
            if not data:
                return False
            if end is one.server:
                if one.cut is None:
                    one.client.sendall(data)
                    return True
                one.reply += data
                return not one.reply.endswith(READY) or self._do_cut(one.cut)
            cut = self._cut
            if cut is not None and cut.sql in one.sent[1 - len(cut.sql) :] + data:
                self._cut = None
                if not cut.is_stored:
                    return self._do_cut(cut)
                one.cut = cut
            one.sent = (one.sent + data)[-100:]
            one.server.sendall(data)
        except OSError:
            return False
        return True

    def _do_cut(self, cut: _Cut) -> bool:
        self.cuts += 1
        self._refuses = cut.refuse
        return False


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    with running_server() as server:
        yield server


@pytest.fixture
def database(server: Server) -> Iterator[str]:
    """A new database with the schema."""
    name = server.new_database()
    yield name
    server.drop(name)


@contextlib.contextmanager
def running_server() -> Iterator[Server]:
    bin_ = programs()
    assert bin_ is not None, "PostgreSQL is not installed (Debian: postgresql)"
    # A short path: the path of a socket has at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
    server = Server(folder, bin_)
    try:
        for role in (OWNER, ROLE):
            server.sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        with contextlib.suppress(AssertionError):
            server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)
