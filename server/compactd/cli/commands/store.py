"""`compactd store`: set up a PostgreSQL database for sessions, check it, and copy sessions to and from it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.cli.framework.command import Command, CommandGroup, Option
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, one_line
from compactd.protocol.errors import CompactdError
from compactd.storage.choose import STORE, make_database_store, make_store
from compactd.storage.paths import data_folder

if TYPE_CHECKING:
    from compactd.storage.postgres.store import PostgresStore

ABOUT = f"""\
Sessions are files, unless {STORE} names a PostgreSQL database, for example
postgresql://USER:PASSWORD@HOST/DATABASE. Then any number of machines can share them.
COMPACTD_TENANT separates tenants in one database (default: default). Needs the extra
`postgres`: pip install 'compactd[postgres]'.

Without a command, it says which store is used. Set the URL in the environment rather
than with --url: other users of the machine can see a command's arguments.
"""
_PLACES = ("files", "postgresql")
_URL = Option("--url", f"the database (default: {STORE})")


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""


class MigrateOptions(Struct, frozen=True, kw_only=True):
    """The options of `store migrate`."""

    url: str | None
    role: str | None


class CheckOptions(Struct, frozen=True, kw_only=True):
    """The options of `store check`."""

    url: str | None


class MoveOptions(Struct, frozen=True, kw_only=True):
    """The options of `store move`."""

    url: str | None
    to: str


def run(options: Options, page: Page) -> int:
    """Print which store is used."""
    kind = "postgresql" if os.environ.get(STORE, "").strip() else "files"
    make_store(os.environ, data_folder(os.environ))
    if page.is_json:
        page.json({"store": kind})
    else:
        page.line("sessions are in PostgreSQL" if kind == "postgresql" else "sessions are files")
    return DONE


def migrate(options: MigrateOptions, page: Page) -> int:
    """Create or update the schema, as its owner."""
    url = _url(options.url)
    from compactd.storage.postgres.migrate import migrate as bring_up
    from compactd.storage.postgres.schema import VERSION

    steps = bring_up(url, options.role)
    if page.is_json:
        page.json({"version": VERSION, "steps": steps, "role": options.role})
    else:
        page.line(f"the schema has version {VERSION}" + ("" if steps else " already"))
        if options.role is not None:
            page.line(f"the role {one_line(options.role)} may use it")
    return DONE if steps or options.role is not None else NOTHING_TO_DO


def check(options: CheckOptions, page: Page) -> int:
    """Print the schema's version and what keeps tenants from being isolated."""
    url = _url(options.url)
    from compactd.storage.postgres.migrate import check as examine
    from compactd.storage.postgres.schema import VERSION

    found = examine(url)
    problems = found.problems
    if found.version != VERSION:
        problems = (f"the schema has version {found.version}, and this compactd uses {VERSION}", *problems)
    if page.is_json:
        page.json(
            {"version": found.version, "server": found.server, "role": found.role, "problems": list(problems)}
        )
    else:
        page.line(f"PostgreSQL {found.server}, schema version {found.version}, role {one_line(found.role)}")
        for problem in problems:
            page.line(problem, "due")
        if not problems:
            page.line("row-level security holds: this role sees only its tenant's sessions")
    return FAILED if problems else DONE


def move(options: MoveOptions, page: Page) -> int:
    """Copy all sessions of one store into the other, and print what was copied."""
    url = _url(options.url)
    home = data_folder(os.environ)
    store = _store(url, home)
    done = asyncio.run(_copy_all(store, home, options.to))
    by_outcome = {
        name: sorted(session_id for session_id, outcome in done.items() if outcome == name)
        for name in ("copied", "same")
    }
    refused = {one: why for one, why in sorted(done.items()) if why not in by_outcome}
    if page.is_json:
        page.json({**by_outcome, "refused": refused})
    else:
        for session_id in by_outcome["copied"]:
            page.line(f"{one_line(session_id)}  copied")
        for session_id, why in refused.items():
            page.line(f"{one_line(session_id)}  not copied: {why}", "due")
        page.line(f"{len(by_outcome['copied'])} copied, {len(by_outcome['same'])} already there")
    if refused:
        return FAILED
    return DONE if by_outcome["copied"] else NOTHING_TO_DO


async def _copy_all(store: PostgresStore, home: Path, to: str) -> dict[str, str]:
    from compactd.storage.folder import FolderStore
    from compactd.storage.postgres.move import to_database, to_file

    folder = FolderStore(home)
    done: dict[str, str] = {}
    try:
        stored = await asyncio.to_thread(folder.list if to == "postgresql" else store.list)
        for session_id in (one.session_id for one in stored):
            try:
                if to == "postgresql":
                    outcome: str = await to_database(session_id, folder, store)
                else:
                    outcome = await to_file(session_id, store, home)
            except CompactdError as error:
                outcome = error.message
            if outcome == "differs":
                outcome = "the target has another session of this id, which was not changed"
            done[session_id] = outcome
    finally:
        await store.close()
        await folder.close()
    return done


def _url(given: str | None) -> str:
    """Return the database's URL. Raises `CommandError` if there is none or if it cannot be used."""
    url = given or os.environ.get(STORE, "").strip()
    if not url:
        raise CommandError(
            "No database is named.",
            hint=f"Set {STORE}=postgresql://USER:PASSWORD@HOST/DATABASE.",
            exit_code=USAGE,
        )
    _store(url, Path())  # check the URL, and that psycopg is installed
    return url


def _store(url: str, home: Path) -> PostgresStore:
    return make_database_store(url.strip(), os.environ, home)


COMMAND = CommandGroup(
    Command(
        "store",
        Options,
        run,
        about=ABOUT,
        params=(),
        examples=(("compactd store", "say where sessions are stored"),),
    ),
    commands=(
        Command(
            "migrate",
            MigrateOptions,
            migrate,
            about="Creates or updates the schema `compactd` in the database. Run it as the role that\n"
            "owns the schema, not as the role that daemons use. Safe to run again, and while\n"
            "daemons use the database.",
            params=(_URL, Option("--role", "the role of the daemons: let it use the tables")),
            examples=(("compactd store migrate --role compactd", "set up, and let a role use it"),),
        ),
        Command(
            "check",
            CheckOptions,
            check,
            about="Says the version of the schema, the role, and whether row-level security holds:\n"
            "whether this role can see only the sessions of its tenant. Exit code 1 if not.",
            params=(Option("--url", f"the database (default: {STORE})"),),
            examples=(("compactd store check", "check the database and the role"),),
        ),
        Command(
            "move",
            MoveOptions,
            move,
            about="Copies all sessions from the files of this machine into the database, or back. The\n"
            "journals are the same to the byte. The originals stay; delete them with\n"
            "`compactd sessions delete`. Safe to run again: what is already there stays as it is.",
            params=(
                Option("--url", f"the database (default: {STORE})"),
                Option("--to", "where to copy the sessions", metavar="STORE", choices=_PLACES, required=True),
            ),
            examples=(
                ("compactd store move --to postgresql", "copy this machine's sessions into the database"),
                ("compactd store move --to files", "copy them back"),
            ),
        ),
    ),
)
