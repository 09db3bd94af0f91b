"""Create or update the schema, and check that a role sees only its tenant's rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import psycopg
from msgspec import Struct
from psycopg import sql

from compactd.protocol.errors import FormatNotSupported, StorageFailed
from compactd.storage.postgres.failures import storage_failed
from compactd.storage.postgres.pool import Connection, parameters_of
from compactd.storage.postgres.schema import MIGRATIONS, TABLES, Migration

_LOCK = 0x636F6D70_61637464
"""The key of the advisory lock under which one node at a time migrates ("compactd")."""
_WAIT_S = 600.0
_MADE = "INSERT INTO compactd.version(version) VALUES (%s)"
_NOT_MIGRATED = "The schema could not be updated"
_NOT_CHECKED = "The database could not be checked"


class SchemaCheck(Struct, frozen=True, kw_only=True):
    """What `check` found out about a database."""

    version: int
    """The version of the schema; 0 if there is none."""
    server: str
    """The version of the PostgreSQL server, for example `15.7`."""
    role: str
    problems: tuple[str, ...]
    """What keeps tenants from being isolated. Empty if row-level security holds for this role."""


def migrate(url: str, role: str | None = None, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the schema to the newest version, and let `role` use it. Return the number of steps made.

    Waits up to ten minutes while another node migrates. Idempotent. Raises `StorageFailed`, and
    `FormatNotSupported` if the schema is newer than this version of compactd.
    """
    try:
        with _connect(url) as connection:
            _lock(connection)
            steps = _migrate(connection, migrations)
            if role is not None:
                _grant(connection, role)
            return steps
    except psycopg.Error as error:
        raise storage_failed(_NOT_MIGRATED, error) from None


def check(url: str) -> SchemaCheck:
    """Return the version of the schema, and whether row-level security holds for the role of `url`."""
    try:
        with _connect(url) as connection:
            return _check(connection)
    except psycopg.Error as error:
        raise storage_failed(_NOT_CHECKED, error) from None


def _connect(url: str) -> Connection:
    return Connection.connect(parameters_of(url), autocommit=True)


def _lock(connection: Connection) -> None:
    # Ask again and again instead of waiting in one statement: `CREATE INDEX CONCURRENTLY` waits for all
    # other statements that run, so it would wait for the one that waits for the lock.
    until = time.monotonic() + _WAIT_S
    while _value(connection, "SELECT pg_try_advisory_lock(%s)", _LOCK) is not True:
        if time.monotonic() > until:
            raise StorageFailed(f"{_NOT_MIGRATED}: another node is migrating it.", reason="locked")
        time.sleep(0.2)


def _migrate(connection: Connection, migrations: Sequence[Migration]) -> int:
    version = _version(connection)
    if version > len(migrations):
        raise FormatNotSupported(
            f"A newer version of compactd has changed the database's schema (version {version}; this one "
            f"uses {len(migrations)}). Update compactd; nothing was changed.",
            format=version,
            supported=[len(migrations)],
        )
    for number, step in enumerate(migrations[version:], version + 1):
        with connection.transaction():
            if number == 1:
                connection.execute("CREATE SCHEMA IF NOT EXISTS compactd")
                connection.execute(
                    "CREATE TABLE compactd.version (version integer PRIMARY KEY,"
                    " applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
                )
            for statement in step.statements:
                connection.execute(statement.encode())
            if not step.indexes:
                connection.execute(_MADE, (number,))
        for name, definition in step.indexes:
            # An attempt that was interrupted leaves an index that is never used.
            connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS compactd.{name}".encode())
            connection.execute(f"CREATE INDEX CONCURRENTLY {name} {definition}".encode())
        if step.indexes:
            connection.execute(_MADE, (number,))
    return len(migrations) - version


def _version(connection: Connection) -> int:
    if _value(connection, "SELECT to_regclass('compactd.version')::text") is None:
        return 0
    version = _value(connection, "SELECT coalesce(max(version), 0) FROM compactd.version")
    return version if isinstance(version, int) else 0


def _grant(connection: Connection, role: str) -> None:
    name = sql.Identifier(role)
    tables = sql.SQL(", ").join(sql.Identifier("compactd", table) for table in TABLES)
    for statement in (
        sql.SQL("GRANT USAGE ON SCHEMA compactd TO {}").format(name),
        sql.SQL("GRANT SELECT ON compactd.version TO {}").format(name),
        sql.SQL("GRANT SELECT, INSERT, UPDATE, DELETE ON {} TO {}").format(tables, name),
        sql.SQL("GRANT USAGE ON SEQUENCE compactd.changes TO {}").format(name),
    ):
        connection.execute(statement)


def _check(connection: Connection) -> SchemaCheck:
    version = _version(connection)
    problems = []
    bypasses = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    if _value(connection, bypasses) is True:
        problems.append("this role bypasses row-level security; use a role that is no superuser")
    if version:
        owned = (
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'compactd'::regnamespace AND relkind = 'r'"
            " AND pg_has_role(current_user, relowner, 'MEMBER')"
        )
        if _value(connection, owned) != 0:
            problems.append("this role owns the tables, so it can switch row-level security off")
        forced = (
            "SELECT count(*) FROM pg_class WHERE relnamespace = 'compactd'::regnamespace"
            " AND relname = ANY(%s) AND relrowsecurity AND relforcerowsecurity"
        )
        if _value(connection, forced, list(TABLES)) != len(TABLES):
            problems.append("row-level security is not forced on every table; run `compactd store migrate`")
    return SchemaCheck(
        version=version,
        server=str(_value(connection, "SHOW server_version")),
        role=str(_value(connection, "SELECT current_user")),
        problems=tuple(problems),
    )


def _value(connection: Connection, asked: str, *parameters: object) -> object:
    row = connection.execute(asked.encode(), parameters or None).fetchone()
    return None if row is None else row[0]
