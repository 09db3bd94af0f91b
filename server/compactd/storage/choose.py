"""Choose the session store: the folder of files, or the database that `COMPACTD_STORE` names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from compactd.protocol.errors import StorageFailed

if TYPE_CHECKING:
    from compactd.storage.postgres.store import PostgresStore
    from compactd.storage.protocols import Store

STORE = "COMPACTD_STORE"
"""The environment variable with the URL of the database. Without it, sessions are files."""
TENANT = "COMPACTD_TENANT"
"""The environment variable with the tenant, for a database that several tenants share."""
DEFAULT_TENANT = "default"
_SCHEMES = ("postgresql", "postgres")


def make_store(environ: Mapping[str, str], home: Path) -> Store:
    """Return the store that the environment names. Connects to nothing and creates nothing yet.

    Raises `StorageFailed` for a URL that cannot be used, or if psycopg is not installed.
    """
    url = environ.get(STORE, "").strip()
    if not url:
        from compactd.storage.folder import FolderStore

        return FolderStore(home)
    return make_database_store(url, environ, home)


def make_database_store(url: str, environ: Mapping[str, str], home: Path) -> PostgresStore:
    """Return the store in the database at `url`, for the tenant that the environment names. Connects to
    nothing yet. Raises `StorageFailed` like `make_store`.
    """
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _SCHEMES:
        # Show nothing of the URL: it can contain a password.
        raise StorageFailed(
            f"{STORE} is not the URL of a store. Write postgresql://USER:PASSWORD@HOST/DATABASE, "
            "or unset it to store sessions in files.",
            reason="unknown_store",
        )
    try:
        from compactd.storage.postgres.store import PostgresStore
    except ImportError as missing:
        raise StorageFailed(
            f"{STORE} names a PostgreSQL database, but psycopg cannot be imported "
            f"({missing.name or 'libpq'}). Install it with `pip install 'compactd[postgres]'`.",
            reason="missing_extra",
        ) from None
    return PostgresStore(url, tenant=environ.get(TENANT) or DEFAULT_TENANT, home=home)
