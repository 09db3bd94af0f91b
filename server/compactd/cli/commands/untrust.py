"""`compactd untrust DIR`: withdraws the trust in a folder's `.compactd.toml`."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.page import Page, one_line
from compactd.protocol.errors import CompactdError
from compactd.session.trust import untrust
from compactd.storage.paths import data_folder

ABOUT = """\
Withdraws the trust in a folder's .compactd.toml. From now on the file may only set
sizes, like any untrusted file. The folder need not exist any more. Sessions notice
this when they are started or resumed.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    dir: str


def run(options: Options, page: Page) -> int:
    """Remove the folder from the list of trusted folders."""
    try:
        done = untrust(data_folder(os.environ), str(Path(options.dir).absolute()))
    except CompactdError as error:
        raise CommandError(f"{error.message}.", hint="Nothing was changed.", code=error.code) from error
    if page.is_json:
        page.json(done)
    else:
        folder = one_line(done.path)
        page.line(f"{folder} is no longer trusted" if done.changed else f"{folder} was not trusted")
    return DONE if done.changed else NOTHING_TO_DO


COMMAND = Command(
    "untrust",
    Options,
    run,
    about=ABOUT,
    params=(Argument("dir", "the folder of the .compactd.toml", is_file=True),),
    examples=(("compactd untrust .", "allow this folder's file to set only sizes"),),
)
