"""`compactd untrust DIR`: takes the trust in a folder's `.compactd.toml` back."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, Stop
from compactd.cli.framework.page import Page, one_line
from compactd.protocol.errors import CompactdError
from compactd.session.trust import untrust
from compactd.storage.paths import data_folder

ABOUT = """\
From now on the folder's .compactd.toml sets sizes alone, as a stranger's does. The
folder need not be there any more. Sessions see it when they are started or resumed.
"""


class Options(Struct, frozen=True, kw_only=True):
    """Which folder."""

    dir: str


def run(options: Options, page: Page) -> int:
    """Takes it off the list."""
    try:
        done = untrust(data_folder(os.environ), str(Path(options.dir).absolute()))
    except CompactdError as error:
        raise Stop(f"{error.message}.", hint="Nothing was changed.", code=error.code) from error
    if page.is_json:
        page.json(done)
    else:
        folder = one_line(done.path)
        page.line(f"{folder} is not trusted any more" if done.changed else f"{folder} was not trusted")
    return DONE if done.changed else NOTHING_TO_DO


COMMAND = Command(
    "untrust",
    Options,
    run,
    about=ABOUT,
    params=(Argument("dir", "the folder of the .compactd.toml", is_file=True),),
    examples=(("compactd untrust .", "this folder's file sets sizes alone"),),
)
