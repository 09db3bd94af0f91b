"""What the database itself notes: which node took which lease, and which node wrote which records.

The triggers belong to the superuser and know nothing of compactd's checks, so they also note a write that
these should have stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

AUDIT = (
    "CREATE SCHEMA audit",
    "CREATE TABLE audit.leases (id bigserial, session text, token text, node text)",
    "CREATE TABLE audit.writes"
    " (id bigserial, session text, token text, node text, first bigint, last bigint)",
    """CREATE FUNCTION audit.note_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        IF NEW.token IS NOT NULL AND (TG_OP = 'INSERT' OR NEW.token IS DISTINCT FROM OLD.token) THEN
            INSERT INTO audit.leases (session, token, node)
            VALUES (NEW.session_id, NEW.token, current_setting('application_name'));
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER note_lease AFTER INSERT OR UPDATE OF token ON compactd.sessions
    FOR EACH ROW EXECUTE FUNCTION audit.note_lease()""",
    """CREATE FUNCTION audit.note_writes() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
        INSERT INTO audit.writes (session, token, node, first, last)
        SELECT a.session_id, s.token, current_setting('application_name'), min(a.seq), max(a.seq)
        FROM added AS a JOIN compactd.sessions AS s USING (tenant, session_id)
        GROUP BY a.session_id, s.token;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER note_writes AFTER INSERT ON compactd.records REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION audit.note_writes()""",
)

_WRITES = """
SELECT w.first, w.last, w.node, l.id, l.node FROM audit.writes AS w LEFT JOIN LATERAL (
    SELECT id, node FROM audit.leases WHERE session = w.session AND token = w.token ORDER BY id LIMIT 1
) AS l ON true
WHERE w.session = %s ORDER BY w.id"""

Sql = Callable[..., list[tuple[object, ...]]]


def stale_writes(sql: Sql, session: str) -> Sequence[str]:
    """Return what was written by a node that did not have the lease, or after another node had taken it."""
    found, newest = [], 0
    for first, last, writer, lease, holder in sql(_WRITES, session):
        what = f"{session}: records {first} to {last} by {writer}"
        if writer != holder:
            found.append(f"{what}, with the lease of {holder}")
        assert lease is None or isinstance(lease, int)
        if (lease or 0) < newest:
            found.append(f"{what}, after a later lease had been used")
        newest = max(newest, lease or 0)
    return found
