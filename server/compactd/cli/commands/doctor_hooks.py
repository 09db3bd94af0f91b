"""`compactd doctor --hooks` and `--repair-hooks`: the hooks that agents have, and their program."""

from __future__ import annotations

import os

from msgspec import Struct

from compactd.cli.commands.install import NAMES, what_runs
from compactd.cli.framework.exit_codes import DONE, FAILED, NOTHING_TO_DO
from compactd.cli.framework.page import Page
from compactd.integrations.hooks.events import AgentName
from compactd.integrations.hooks.install import (
    CannotChange,
    installed_programs,
    is_program,
    program,
    repair,
)
from compactd.integrations.hooks.settings_change import WantedHooks, settings_path


class BrokenHook(Struct, frozen=True):
    """A program in an agent's settings that no longer exists, or why the settings cannot be read."""

    agent: AgentName
    settings: str
    program: str
    problem: str = ""


class InstalledHooks(Struct, frozen=True, kw_only=True):
    """compactd's hooks in the settings of an agent, or why the settings cannot be read."""

    agent: AgentName
    settings: str
    programs: tuple[str, ...]
    """The programs that the hooks run."""
    problem: str = ""


def installed_hooks() -> tuple[InstalledHooks, ...]:
    """Return the hooks and status lines of all agents that have any, and the settings that cannot be read."""
    found: list[InstalledHooks] = []
    for agent in NAMES:
        try:
            path = settings_path(agent, os.environ)
        except KeyError:
            return ()  # without a home folder, no agent has settings
        try:
            programs, problem = installed_programs(path), ""
        except CannotChange as error:
            programs, problem = (), str(error)
        if programs or problem:
            found.append(InstalledHooks(agent=agent, settings=str(path), programs=programs, problem=problem))
    return tuple(found)


def installed_line(one: InstalledHooks) -> str:
    """Return the hooks of an agent as a line for the user."""
    return f"{NAMES[one.agent]}: {one.settings} runs {', '.join(one.programs)}"


def broken_hooks(installed: tuple[InstalledHooks, ...]) -> tuple[BrokenHook, ...]:
    """Return those of the installed hooks and status lines whose program no longer exists."""
    found: list[BrokenHook] = []
    for one in installed:
        found += [BrokenHook(one.agent, one.settings, name) for name in one.programs if not is_program(name)]
        if one.problem:
            found.append(BrokenHook(one.agent, one.settings, "", one.problem))
    return tuple(found)


def broken_line(one: BrokenHook) -> str:
    """Return a broken hook as a line for the user."""
    if one.problem:
        return f"{NAMES[one.agent]}: {one.problem}"
    return f"{NAMES[one.agent]}: {one.settings} runs {one.program}, which does not exist"


def repair_hooks(page: Page) -> int:
    """Write the path of this compactd into all broken hooks and status lines, and print the changes. Return
    `NOTHING_TO_DO` if none is broken, and `FAILED` if settings cannot be changed.
    """
    broken = broken_hooks(installed_hooks())
    told, failures = [], []
    for agent in NAMES:
        if not any(one.agent == agent for one in broken):
            continue
        try:
            change = repair(settings_path(agent, os.environ), WantedHooks(agent, program()), os.environ)
        except CannotChange as error:
            failures.append(f"{NAMES[agent]}: {error}")
            continue
        told.append({"agent": agent, "settings": str(change.path), "diff": change.diff()})
    if page.is_json:
        page.json({"broken": broken, "repaired": told, "failed": failures})
    else:
        _show(page, told, failures)
    return FAILED if failures else DONE if told else NOTHING_TO_DO


def _show(page: Page, told: list[dict[str, str]], failures: list[str]) -> None:
    if not told and not failures:
        page.line("no hook runs a program that is gone")
    for one in told:
        for line in one["diff"].splitlines():
            page.line(line)
        page.line(f"wrote {one['settings']}")
    for failure in failures:
        page.line(failure, "due")
    if told:
        page.line(what_runs())
