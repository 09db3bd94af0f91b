"""`compactd uninstall AGENT`: removes compactd's hooks from an agent's settings."""

from __future__ import annotations

import os
from typing import Literal

from msgspec import Struct

from compactd.cli.commands.install import SETTINGS, settings_place, show
from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.events import AGENTS, AgentName
from compactd.integrations.hooks.hermes_plugin import NAME as HERMES
from compactd.integrations.hooks.install import CannotChange, uninstall

ABOUT = """\
Removes compactd's hooks from an agent's settings. If nothing else was changed since
`compactd install AGENT`, the file is restored byte for byte. Otherwise only compactd's
entries are removed. Copied sessions stay: `compactd sessions delete ID` deletes one.
"""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    agent: AgentName | Literal["hermes"]
    dry_run: bool
    settings: str | None


def run(options: Options, page: Page) -> int:
    """Remove the hooks and show the change."""
    agent = options.agent
    if agent == HERMES:
        from compactd.cli.commands import install_hermes

        if options.settings:
            raise CommandError("Hermes' plugin is not in its settings.", hint="Leave out --settings.")
        return install_hermes.run(page, dry_run=options.dry_run, remove=True)
    path = settings_place(agent, options.settings)
    try:
        change = uninstall(path, agent, os.environ, dry_run=options.dry_run)
    except CannotChange as error:
        raise CommandError(f"{error}.", hint="Nothing was changed.") from error
    done = change.is_needed and not options.dry_run
    show(page, change, agent, done=done, already="compactd's hooks are not installed")
    return DONE if change.is_needed else NOTHING_TO_DO


COMMAND = Command(
    "uninstall",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", ", ".join((*AGENTS, HERMES)), choices=(*AGENTS, HERMES)),
        Flag("--dry-run", "only show the change"),
        SETTINGS,
    ),
    examples=(("compactd uninstall claude-code", "remove the hooks from Claude Code"),),
)
