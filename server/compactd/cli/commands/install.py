"""`compactd install AGENT`: our hooks into an agent's settings, the change shown first."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, Stop
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.events import AGENTS, Agent
from compactd.integrations.hooks.install import (
    CannotChange,
    Change,
    exposed_program,
    install,
    installation,
    program,
)
from compactd.integrations.hooks.settings_change import Wanted, place_of
from compactd.integrations.hooks.state import hooks_folder

NAMES: dict[Agent, str] = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI"}

ABOUT = """\
Puts hooks into an agent's own settings: it tells compactd of its turns, and after each
of its compactions gets back the facts that its summary lost. The change is shown; every
other byte of the file stays, and `compactd uninstall AGENT` gives it back as it was.

Nothing leaves the machine: sessions are mirrored into compactd's own folder.
"""

AFTER: dict[Agent, tuple[str, ...]] = {
    "claude-code": ("Sessions that are started from now on use it; `/hooks` in Claude Code lists it.",),
    "codex": (
        "Codex passes over hooks that you did not say you trust, without a word: start `codex`, look at",
        "them where it asks (or under `/hooks`), and trust them. compactd does not do that for you.",
    ),
    "gemini-cli": ("Sessions that are started from now on use it; `/hooks` in Gemini CLI lists it.",),
}


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    agent: str
    dry_run: bool
    no_statusline: bool
    settings: str | None


def agent_of(name: str) -> Agent:
    return next(agent for agent in AGENTS if agent == name)


def settings_of(agent: Agent, given: str | None) -> Path:
    """The file that is meant. Raises `Stop`."""
    if given is not None:
        return Path(given).absolute()
    try:
        return place_of(agent, os.environ)
    except KeyError:
        raise Stop("there is no home folder.", hint="Give the file: --settings FILE.") from None


def run(options: Options, page: Page) -> int:
    """Shows what changes, and changes it."""
    agent = agent_of(options.agent)
    path = settings_of(agent, options.settings)
    wanted = Wanted(agent, program(), with_statusline=not options.no_statusline)
    try:
        change = installation(path, wanted)
        if not options.dry_run and change.is_needed:
            change = install(path, wanted, os.environ)
    except CannotChange as error:
        raise Stop(f"{error}.", hint="Nothing was changed.") from error
    done = change.is_needed and not options.dry_run
    exposed = exposed_program()
    if exposed is not None:
        told = f"{exposed}, decides what these hooks run. Better: install compactd outside, and run that one."
        change = replace(change, notes=(*change.notes, told))
    show(page, change, agent, done=done, already="its hooks are there already")
    if done and not page.is_json:
        page.line(f"what it was is kept in {hooks_folder(os.environ)}")
        for text in AFTER[agent]:
            page.line(text)
    return DONE if change.is_needed else NOTHING_TO_DO


def show(page: Page, change: Change, agent: Agent, *, done: bool, already: str) -> None:
    """The change, for a person or a program."""
    if page.is_json:
        page.json(
            {
                "agent": agent,
                "settings": str(change.path),
                "changed": done,
                "diff": change.diff() if change.is_needed else "",
                "notes": change.notes,
            }
        )
        return
    if not change.is_needed:
        page.line(f"{NAMES[agent]} · {change.path}: {already}")
    for line in change.diff().splitlines():
        page.line(line)
    for note in change.notes:
        page.line(note, "due")
    if change.is_needed:
        did = "removed" if change.after is None else "wrote"
        page.line(f"{did if done else 'nothing was written:'} {change.path}")


COMMAND = Command(
    "install",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", ", ".join(AGENTS), choices=AGENTS),
        Flag("--dry-run", "only show what would change"),
        Flag("--no-statusline", "leave Claude Code's status line alone"),
        Option("--settings", "another settings file than the user's", metavar="FILE", is_file=True),
    ),
    examples=(
        ("compactd install claude-code --dry-run", "what would change"),
        ("compactd install codex", "and do it"),
    ),
)
