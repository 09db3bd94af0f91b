"""The tables of the schema `compactd`, as numbered migrations.

A migration only adds: tables, columns with a constant default, and indexes made with `CREATE INDEX
CONCURRENTLY`. So no table is rewritten, and nodes go on working meanwhile.
"""

from __future__ import annotations

from typing import NamedTuple

TABLES = ("nodes", "sessions", "records", "words", "indexed", "calls")
"""The tables with rows of tenants. Row-level security is forced on each of them."""


FORGET_WORDS = (
    "DELETE FROM compactd.words WHERE tenant = %(tenant)s AND session_id = %(key)s",
    "DELETE FROM compactd.indexed WHERE tenant = %(tenant)s AND session_id = %(key)s",
)
"""Remove the searchable text of a session."""
LOCK_WORDS = "SELECT pg_advisory_xact_lock(hashtextextended(%(tenant)s || ' ' || %(key)s, 0))"
"""Wait until no other node changes the searchable text of a session. The lock ends with the transaction."""


class Migration(NamedTuple):
    """A step from one version of the schema to the next. It has `statements` or `indexes`, not both: a step
    is done again if making an index was interrupted.
    """

    statements: tuple[str, ...] = ()
    """Run in one transaction."""
    indexes: tuple[tuple[str, str], ...] = ()
    """(index name, what follows `CREATE INDEX CONCURRENTLY name`). Each is its own transaction."""


def _isolated(table: str) -> tuple[str, ...]:
    """Return the statements that show each tenant only its own rows, also to the table's owner."""
    mine = "tenant = current_setting('compactd.tenant', true)"
    return (
        f"ALTER TABLE compactd.{table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE compactd.{table} FORCE ROW LEVEL SECURITY",
        f"DROP POLICY IF EXISTS tenant ON compactd.{table}",
        f"CREATE POLICY tenant ON compactd.{table} USING ({mine}) WITH CHECK ({mine})",
    )


def _grant_as(table: str, *, like: str) -> str:
    """Return the statement that lets roles use a new table as they may use another one."""
    return f"""
        DO $$ DECLARE given record; BEGIN
            FOR given IN
                SELECT privilege_type, rolname AS role
                FROM pg_class, aclexplode(relacl) JOIN pg_roles ON pg_roles.oid = grantee
                WHERE pg_class.oid = 'compactd.{like}'::regclass AND grantee <> relowner
            LOOP
                EXECUTE format('GRANT %s ON compactd.{table} TO %I', given.privilege_type, given.role);
            END LOOP;
        END $$"""


_FIRST = (
    # Numbers the changes of sessions other than appends. A number is never given twice, so that a follower
    # also notices a session that was deleted and created again.
    "CREATE SEQUENCE compactd.changes",
    """CREATE TABLE compactd.sessions (
        tenant text NOT NULL,
        session_id text NOT NULL,
        head bigint NOT NULL DEFAULT 0,
        bytes bigint NOT NULL DEFAULT 0,
        changed bigint NOT NULL DEFAULT nextval('compactd.changes'),
        updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        info bytea,
        info_bytes bigint,
        owner jsonb,
        token text,
        lease_until timestamptz,
        PRIMARY KEY (tenant, session_id)
    ) WITH (fillfactor = 70)""",
    """CREATE TABLE compactd.records (
        tenant text NOT NULL,
        session_id text NOT NULL,
        seq bigint NOT NULL,
        record bytea NOT NULL,
        message_id text,
        PRIMARY KEY (tenant, session_id, seq)
    )""",
    "CREATE UNIQUE INDEX records_message_id ON compactd.records (tenant, session_id, message_id)"
    " WHERE message_id IS NOT NULL",
    """CREATE TABLE compactd.words (
        tenant text NOT NULL,
        session_id text NOT NULL,
        seq bigint NOT NULL,
        entry_id text NOT NULL,
        role text NOT NULL,
        at double precision NOT NULL,
        text text NOT NULL,
        words tsvector NOT NULL,
        PRIMARY KEY (tenant, session_id, seq)
    )""",
    "CREATE INDEX words_words ON compactd.words USING gin (words)",
    """CREATE TABLE compactd.indexed (
        tenant text NOT NULL,
        session_id text NOT NULL,
        head bigint NOT NULL,
        changed bigint NOT NULL,
        PRIMARY KEY (tenant, session_id)
    )""",
    # Calls between nodes. They are short-lived, and a node that waits for an answer looks from time to time.
    """CREATE UNLOGGED TABLE compactd.calls (
        tenant text NOT NULL,
        id text NOT NULL,
        number bigint GENERATED ALWAYS AS IDENTITY,
        sender text NOT NULL,
        receiver text NOT NULL,
        body bytea NOT NULL,
        is_taken boolean NOT NULL DEFAULT false,
        answer bytea,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (tenant, id)
    )""",
    "CREATE INDEX calls_receiver ON compactd.calls (tenant, receiver) WHERE answer IS NULL",
    *(
        statement
        for table in ("sessions", "records", "words", "indexed", "calls")
        for statement in _isolated(table)
    ),
)

# A version 1 that was never released had the table and the column.
_LEASES_OF_NODES = (
    """CREATE TABLE IF NOT EXISTS compactd.nodes (
        tenant text NOT NULL,
        node text NOT NULL,
        owner jsonb NOT NULL,
        lease_until timestamptz NOT NULL,
        PRIMARY KEY (tenant, node)
    )""",
    *_isolated("nodes"),
    _grant_as("nodes", like="sessions"),
    "ALTER TABLE compactd.sessions ADD COLUMN IF NOT EXISTS node text",
)
"""One lease for each node, instead of `owner` and `lease_until` of each session."""

MIGRATIONS: tuple[Migration, ...] = (Migration(_FIRST), Migration(_LEASES_OF_NODES))
"""`MIGRATIONS[n]` turns version n into version n + 1."""

VERSION = len(MIGRATIONS)
"""The version of the schema that this version of compactd uses."""
