"""`compactd install AGENT`: adds compactd's hooks to an agent's settings and shows the change."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from compactd.cli.framework.command import Argument, Command, Flag, Option
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, CommandError
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.events import AGENTS, AgentName
from compactd.integrations.hooks.hermes_plugin import NAME as HERMES
from compactd.integrations.hooks.hook_state import hooks_folder
from compactd.integrations.hooks.install import (
    CannotChange,
    FileChange,
    exposed_program,
    install,
    missing_programs,
    program,
    stable_script,
)
from compactd.integrations.hooks.output_reduction import LEVELS
from compactd.integrations.hooks.settings_change import WantedHooks, settings_path

NAMES: dict[AgentName, str] = {"claude-code": "Claude Code", "codex": "Codex", "gemini-cli": "Gemini CLI"}

ABOUT = """\
Adds hooks to an agent's settings. The agent then reports its turns to compactd, and
after each of its own compactions it gets back the facts that its summary lost. Shows
the change. The rest of the file stays byte for byte the same, and
`compactd uninstall AGENT` restores the original.

For Hermes, it writes a plugin into Hermes' folder instead, and says how to enable it
(docs/hermes.md).

Nothing leaves the machine: sessions are copied into compactd's own folder.
"""

AFTER: dict[AgentName, tuple[str, ...]] = {
    "claude-code": ("Sessions that start from now on use the hooks; `/hooks` in Claude Code lists them.",),
    "codex": (
        "Codex silently ignores hooks that you have not trusted. Start `codex`, look at the hooks when it",
        "asks (or under `/hooks`), and trust them. compactd does not do that for you.",
    ),
    "gemini-cli": ("Sessions that start from now on use the hooks; `/hooks` in Gemini CLI lists them.",),
}


NOT_REDUCED: dict[AgentName, str] = {
    "codex": "Codex lets no hook shorten a tool's output (openai/codex/issues/38135, open 2026-11).",
    "gemini-cli": (
        "Gemini CLI lets a hook replace a tool's output only by an error, 'Tool result blocked' "
        "(`AfterTool` in 0.61.0, read 2026-11)."
    ),
}
"""Why tool outputs are not reduced in an agent."""
RECALL = (
    "So that the model can read what is left out, add compactd's tools to Claude Code:",
    "`claude mcp add --scope user compactd -- compactd mcp --agent claude-code`",
)


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    agent: AgentName | Literal["hermes"]
    dry_run: bool
    no_statusline: bool
    steer: bool
    no_steer: bool
    reduce: bool
    no_reduce: bool
    level: str | None
    observe: bool
    settings: str | None


def settings_place(agent: AgentName, given: str | None) -> Path:
    """Return the settings file to change: the given one, or the agent's default. Raise `CommandError` if the
    home folder is unknown.
    """
    if given is not None:
        return Path(given).absolute()
    try:
        return settings_path(agent, os.environ)
    except KeyError:
        raise CommandError(
            "the home folder is unknown.", hint="Name the settings file: --settings FILE."
        ) from None


def run(options: Options, page: Page) -> int:
    """Add the hooks and show the change."""
    agent = options.agent
    if agent == HERMES:
        return _run_hermes(options, page)
    path = settings_place(agent, options.settings)
    if options.steer and options.no_steer:
        raise CommandError("--steer and --no-steer exclude each other.", hint="Give one of them.")
    steers = True if options.steer else False if options.no_steer else None
    wanted = WantedHooks(
        agent,
        program(),
        with_statusline=not options.no_statusline,
        steers=steers,
        reduction=_reduction(options),
    )
    try:
        change = install(path, wanted, os.environ, dry_run=options.dry_run)
    except CannotChange as error:
        raise CommandError(f"{error}.", hint="Nothing was changed.") from error
    done = change.is_needed and not options.dry_run
    exposed = exposed_program()
    if exposed is not None:
        told = (
            f"{exposed}, decides what these hooks run. Install compactd where only you can change it, and "
            "run `compactd install` from there."
        )
        change = replace(change, notes=(*change.notes, told))
    if not change.is_needed and (gone := missing_programs(path)):
        told = (
            f"these hooks run a program that is gone: {', '.join(gone)}. "
            "`compactd doctor --repair-hooks` repairs them."
        )
        change = replace(change, notes=(*change.notes, told))
    show(page, change, agent, done=done, already="compactd's hooks are already installed")
    if done and not page.is_json:
        page.line(what_runs())
        page.line(f"a copy of the previous settings is kept in {hooks_folder(os.environ)}")
        for text in (*AFTER[agent], *(RECALL if options.reduce and not options.observe else ())):
            page.line(text)
    return DONE if change.is_needed else NOTHING_TO_DO


def _run_hermes(options: Options, page: Page) -> int:
    from compactd.cli.commands import install_hermes

    hooks = (options.no_statusline, options.steer, options.no_steer, options.reduce, options.no_reduce)
    if any(hooks) or options.level or options.observe or options.settings:
        raise CommandError(
            "Hermes has no hooks of compactd's.",
            hint="Give no options for hooks with it.",
        )
    return install_hermes.run(page, dry_run=options.dry_run)


def _reduction(options: Options) -> str | None:
    """Return what the settings should say about tool outputs (`WantedHooks.reduction`). Raise
    `CommandError`.
    """
    if options.no_reduce:
        if options.reduce:
            raise CommandError("--reduce and --no-reduce exclude each other.", hint="Give one of them.")
        if options.level or options.observe:
            raise CommandError("--level and --observe need --reduce.", hint="Leave them out.")
        return ""
    if not options.reduce:
        if options.level or options.observe:
            raise CommandError("--level and --observe need --reduce.", hint="Add --reduce.")
        return None
    if options.agent in NOT_REDUCED:
        raise CommandError(NOT_REDUCED[options.agent], hint="Leave out --reduce. Nothing was changed.")
    return f"--reduce {options.level or 'default'}{' --observe' if options.observe else ''}"


def what_runs() -> str:
    """Return which program the hooks run, and what would break it."""
    from compactd._runtime.installation import what_breaks

    script = stable_script()
    if script is None:
        return f"the hooks run {program()}"
    return (
        f"the hooks run {script}. {what_breaks(script)} "
        "Afterwards, `compactd doctor --repair-hooks` repairs them."
    )


def show(page: Page, change: FileChange, agent: AgentName, *, done: bool, already: str) -> None:
    """Print the change of a settings file as a diff, or as JSON. `done`: the file was written. `already`:
    what to print if no change is needed.
    """
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


SETTINGS = Option(
    "--settings", "change this settings file instead of the user's", metavar="FILE", is_file=True
)

COMMAND = Command(
    "install",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("agent", ", ".join((*AGENTS, HERMES)), choices=(*AGENTS, HERMES)),
        Flag("--dry-run", "only show the change"),
        Flag("--no-statusline", "do not change Claude Code's status line"),
        Flag("--steer", "say what a summary of Claude Code must contain, before it is written (default)"),
        Flag("--no-steer", "do not say it"),
        Flag("--reduce", "shorten tool output before Claude Code's model gets it (docs/claude-code.md)"),
        Option("--level", "how much is left out (default: default)", choices=LEVELS),
        Flag("--observe", "with --reduce: only count what would be left out"),
        Flag("--no-reduce", "shorten no tool output (as without --reduce)"),
        SETTINGS,
    ),
    examples=(
        ("compactd install claude-code --dry-run", "show what would change"),
        ("compactd install codex", "add the hooks to Codex"),
        ("compactd install hermes", "put the plugin into Hermes' folder"),
        ("compactd install claude-code --reduce --observe", "count what shorter tool output would save"),
    ),
)
