"""`compactd trust DIR`: lets a folder's `.compactd.toml` set more than an untrusted file may."""

from __future__ import annotations

import os
import time
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, one_line
from compactd.protocol.errors import CompactdError
from compactd.protocol.wire import TrustResult
from compactd.session.trust import list_trusted, trust
from compactd.storage.paths import data_folder
from compactd.storage.settings_files import WORKSPACE_FILE

ABOUT = """\
Trusts a folder's .compactd.toml. An untrusted file may only set sizes that make
compactions earlier or smaller, within bounds. A trusted file may also decide whether
and to which model the conversation is sent, what that may cost, and what the summary
prompt says. No such file can set addresses, headers, keys or commands.

The trust is valid for this folder and the current content of the file: if the file
changes, it is untrusted again. Prints what the file sets and what that allows; use
--dry-run to read it first. Sessions read the file when they are started or resumed.
Without DIR, it lists the trusted folders.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    dir: str | None
    dry_run: bool


def run(options: Options, page: Page) -> int:
    """Trust the folder's file and print what it sets."""
    data = data_folder(os.environ)
    if options.dir is None:
        return list_folders(page)
    try:
        done = trust(data, str(Path(options.dir).absolute()), time.time(), dry_run=options.dry_run)
    except CompactdError as error:
        has_file = Path(options.dir, WORKSPACE_FILE).is_file()
        raise CommandError(
            f"{error.message.removesuffix(' - at `$.path`')}.",
            hint="Nothing was changed.",
            exit_code=FAILED if has_file else USAGE,
            code=error.code,
        ) from error
    if page.is_json:
        page.json(done)
    else:
        _draw(page, done, dry_run=options.dry_run)
    return DONE if done.changed or options.dry_run else NOTHING_TO_DO


def list_folders(page: Page) -> int:
    """Print every folder that was trusted. Return `FAILED` if one of them is no longer trusted, or if the
    list cannot be used.
    """
    listed = list_trusted(data_folder(os.environ))
    stale = [one for one in listed.folders if one.state != "trusted"]
    if page.is_json:
        page.json(listed)
    else:
        if listed.problem is not None:
            page.line(listed.problem, "due")
        elif not listed.folders:
            page.line("no folder is trusted")
        for one in listed.folders:
            told = {
                "trusted": "trusted",
                "changed": "changed since it was trusted: no longer trusted",
                "missing": "its .compactd.toml is gone: no longer trusted",
            }[one.state]
            page.line(f"{one_line(one.path)}  {told}", "due" if one.state != "trusted" else "")
    return FAILED if stale or listed.problem is not None else DONE


def _draw(page: Page, done: TrustResult, *, dry_run: bool) -> None:
    if not done.settings:
        page.line(".compactd.toml sets nothing")
    for one in done.settings:
        value = bytes(one.value).decode()
        page.line(one_line(f"{one.name} = {value}"))
        if one.allows is not None:
            page.line(f"  {one.allows}", "due")
    for warning in done.warnings:
        page.line(one_line(warning), "due")
    folder = one_line(done.path)
    if dry_run:
        page.line(f"nothing was changed; without --dry-run, {folder} would be trusted with these settings")
    elif done.changed:
        page.line(f"{folder} is trusted until its .compactd.toml changes")
    else:
        page.line(f"{folder} was already trusted with this file")


COMMAND = Command(
    "trust",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("dir", "the folder of the .compactd.toml", is_file=True, required=False),
        Flag("--dry-run", "only show what the file sets and what trusting it would allow"),
    ),
    examples=(
        ("compactd trust . --dry-run", "show what this folder's file would be allowed to do"),
        ("compactd trust .", "trust it until the file changes"),
        ("compactd trust", "list the trusted folders; exit code 1 if a file has changed"),
    ),
)
