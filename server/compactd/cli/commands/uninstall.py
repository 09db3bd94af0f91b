"""`compactd uninstall AGENT`: our hooks out of an agent's settings."""

from __future__ import annotations

import os

from msgspec import Struct

from compactd.cli.commands.install import agent_of, settings_of, show
from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, Stop
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.events import AGENTS
from compactd.integrations.hooks.install import CannotChange, removal, uninstall

ABOUT = """\
Takes compactd's hooks out of an agent's settings. Where nothing else was changed since
`compactd install AGENT`, the file is byte for byte what it was before; else only what
is compactd's goes. Mirrored sessions stay: `compactd sessions delete ID` removes one.
"""


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    agent: str
    dry_run: bool
    settings: str | None


def run(options: Options, page: Page) -> int:
    """Shows what changes, and changes it."""
    agent = agent_of(options.agent)
    path = settings_of(agent, options.settings)
    try:
        change = removal(path, agent, os.environ)
        if not options.dry_run:
            uninstall(path, agent, os.environ)
    except CannotChange as error:
        raise Stop(f"{error}.", hint="Nothing was changed.") from error
    done = change.is_needed and not options.dry_run
    show(page, change, agent, done=done, already="no hooks of compactd's are in it")
    return DONE if change.is_needed else NOTHING_TO_DO


COMMAND = Command(
    "uninstall",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", ", ".join(AGENTS), choices=AGENTS),
        Flag("--dry-run", "only show what would change"),
        Option("--settings", "another settings file than the user's", metavar="FILE", is_file=True),
    ),
    examples=(("compactd uninstall claude-code", "as it was before"),),
)
