"""Error messages for what PostgreSQL refuses. They never contain text of the server or of the URL."""

from __future__ import annotations

import re

import psycopg
from msgspec import Struct

from compactd.protocol.errors import StorageFailed
from compactd.storage.protocols import LOST_LEASE

UNREACHABLE = "unreachable"
"""`reason` if there is no connection to the database."""
NOT_REPLICATED = "not_replicated"
"""`reason` if the wait for a synchronous standby was cancelled at the server."""

_ADVICE = {
    "25006": "the database is read-only: a standby, or set so. Connect to the primary",
    "28000": "the database refused the role. Check the role and `pg_hba.conf`",
    "28P01": "the database refused the password. Correct it in COMPACTD_STORE",
    "3D000": "the database does not exist. Create it, then run `compactd store migrate`",
    "3F000": "the schema `compactd` does not exist. Run `compactd store migrate` as the owner",
    "42P01": "a table of the schema `compactd` does not exist. Run `compactd store migrate` as the owner",
    "42703": "the schema `compactd` is of another version. Run `compactd store migrate` as the owner",
    "42501": "the role may not use the tables. Run `compactd store migrate --role ROLE` as the owner",
    "23505": "a message with the same id is already stored in this session. Give each message its own id",
    "53100": "the database's disk is full. Free some space there and send the request again",
    "53200": "the database server is out of memory. Send the request again later",
    "53300": "the database has too many connections. Raise `max_connections`, or stop other clients",
    "55P03": "the database waited too long for a lock (`lock_timeout`). Send the request again",
    "57014": "the database took longer than its `statement_timeout`. Raise it, or send the request again",
    "40001": "other transactions got in the way again and again. Send the request again",
    "40P01": "the database found a deadlock again and again. Send the request again",
    LOST_LEASE: (
        "another node has taken the session over, because this node did not renew its lease in time. Nothing "
        "was written"
    ),
    NOT_REPLICATED: (
        "the database did not wait until its synchronous standby has it, because somebody cancelled that at "
        "the server. Check the standby, then send the request again"
    ),
    UNREACHABLE: "the database cannot be reached. Check that it is running, then send the request again",
}
_STARTUP_TEXTS = {
    "too many clients": "53300",
    "too many connections": "53300",
    "remaining connection slots": "53300",
    "password authentication failed": "28P01",
    "no password supplied": "28P01",
    "no pg_hba.conf entry": "28000",
    'role ".*" does not exist': "28000",
    'database ".*" does not exist': "3D000",
}
"""Patterns of the server's answer to a new connection, and the SQLSTATE that each means. libpq gives no
SQLSTATE for a connection that failed."""
_RETRYABLE = ("40001", "40P01")
_GONE = ("57P01", "57P02", "57P03", "57P05")
"""The server ends the connection, or is starting or stopping."""


class NotReplicated(psycopg.OperationalError):
    """A transaction is committed, but the server no longer waits until the synchronous standby has it. If the
    standby took over now, the transaction would be lost.
    """


class PostgresFailure(Struct, frozen=True, kw_only=True):
    """A write that the database refused: a `WriteFailure`. Nothing of it is stored."""

    reason: str | None
    """The SQLSTATE, `LOST_LEASE` or `UNREACHABLE`."""
    is_broken: bool = False
    told: str | None = None
    """A sentence that says why, if `reason` does not."""

    def sentence(self, doing: str) -> str:
        """Return an error message for the user. `doing` says what failed."""
        if self.told is not None:
            return f"{doing}: {self.told}"
        advice = _ADVICE.get(self.reason or "")
        if advice is None:
            advice = f"PostgreSQL refused it ({self.reason}). The server's log says why"
        return f"{doing}: {advice}."


def failure_of(error: psycopg.Error) -> PostgresFailure:
    """Return the failure that an error of psycopg means."""
    return PostgresFailure(reason=reason_of(error))


def storage_failed(doing: str, error: psycopg.Error) -> StorageFailed:
    """Return the `StorageFailed` error for an error of psycopg. Raise it `from None`: the text of psycopg's
    error can contain parts of the URL.
    """
    failure = failure_of(error)
    return StorageFailed(failure.sentence(doing), reason=failure.reason)


def reason_of(error: psycopg.Error) -> str:
    """Return the SQLSTATE of an error, `NOT_REPLICATED`, `UNREACHABLE`, or the name of its class."""
    if isinstance(error, NotReplicated):
        return NOT_REPLICATED
    if error.sqlstate is not None and error.sqlstate not in _GONE and not error.sqlstate.startswith("08"):
        return error.sqlstate
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return type(error).__name__
    text = str(error)
    return next((state for words, state in _STARTUP_TEXTS.items() if re.search(words, text)), UNREACHABLE)


def is_retryable(error: psycopg.Error) -> bool:
    """Return true if the same statement can succeed when it is sent again."""
    return error.sqlstate in _RETRYABLE


def is_in_doubt(error: psycopg.Error) -> bool:
    """Return true if it is unknown whether the statement took effect, or whether its effect lasts."""
    return reason_of(error) in (UNREACHABLE, NOT_REPLICATED)
