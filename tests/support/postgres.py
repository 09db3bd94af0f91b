"""A PostgreSQL server for tests: one cluster per test process, on a socket in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

OWNER, ROLE, PASSWORD = "owner", "daemon", "hunter2-of-the-database"
"""`OWNER` owns the tables. `ROLE` is what nodes use: it owns nothing and is no superuser."""


def programs() -> Path | None:
    """The folder of the server's programs, the newest version; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    on_path = shutil.which("initdb")
    if found:
        return found[-1].parent
    return None if on_path is None else Path(on_path).parent


class Server:
    """A running server. `url(role)` is the address of a database in it."""

    def __init__(self, folder: Path, bin_: Path) -> None:
        self.folder = folder
        self._bin = bin_
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        if self._as:
            shutil.chown(folder, "postgres", "postgres")
        self._run(
            "initdb", "-D", f"{folder}/data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"
        )
        with (folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"listen_addresses = ''\nunix_socket_directories = '{folder}'\nmax_connections = 60\n"
                "shared_buffers = 32MB\nlog_min_messages = fatal\n"
            )
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-l", f"{self.folder}/log", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")

    def url(self, database: str, role: str = ROLE) -> str:
        return f"postgresql://{role}:{PASSWORD}@/{database}?host={self.folder}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser."""
        import psycopg

        with psycopg.connect(self.url(database, "postgres"), autocommit=True) as connection:
            done = connection.execute(statement.encode())
            return done.fetchall() if done.description else []

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
