"""Choose the session file that a command is about if the user names no file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from compactd.cli.agent_files.places import (
    AGENTS,
    ALIASES,
    TITLES,
    UNSIZED,
    AgentFile,
    describe_places,
    files_of_folder,
    find_files,
    places_of,
    uses_database,
)
from compactd.cli.framework.command import Argument, Flag, Option
from compactd.cli.framework.exit_codes import NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.page import Page, make_encodable, one_line
from compactd.cli.framework.quantities import age_text, size_text


class Choice(Struct, frozen=True, kw_only=True):
    """The session file that a command is about."""

    name: str
    """The file, as the command would get it from the user."""
    found: AgentFile | None = None
    """The file, if the user did not name it."""
    is_of_folder: bool = True
    """False if the agent worked in another folder than the current one."""

    @property
    def facts(self) -> dict[str, object]:
        """The field `chosen` of the JSON output, if the user did not name the file."""
        file = self.found
        if file is None:
            return {}
        return {
            "chosen": {
                "path": make_encodable(self.name),
                "agent": file.agent,
                "modified_at": file.modified_ns / 1e9,
                "size_bytes": file.size_bytes,
                "of_this_folder": self.is_of_folder,
            }
        }


def choose_file(name: str | None, *, pick: bool, agent: str | None, page: Page) -> Choice:
    """Return the file `name`. If it is None, return the file that the user picks from a list (`pick`), or the
    session that was written last in the current folder; if this folder has none, the one that was written
    last on this machine. `agent` restricts the choice to one agent.

    Print which file was chosen, as one line on standard error. Raise `CommandError` if there is no session,
    or if the arguments contradict each other.
    """
    if name is not None:
        if pick or agent is not None:
            option = "--pick" if pick else "--agent"
            raise CommandError(
                f"FILE and {option} cannot be combined: {option} chooses a file.", exit_code=USAGE
            )
        known = ALIASES.get(name, name)
        if known in AGENTS and not Path(name).exists():
            raise CommandError(
                f"cannot read {name}: there is no such file.",
                hint=f"The newest session of {TITLES[known]}: leave out FILE, and add --agent {known}.",
                exit_code=USAGE,
            )
        return Choice(name=name)
    return choose_session(AGENTS if agent is None else (agent,), pick=pick, page=page)


def choose_session(agents: Sequence[str], *, pick: bool, page: Page) -> Choice:
    """Return the session of `agents` that the user picks from a list (`pick`), or the one that was written
    last, as `choose_file` does without a file. Print which one, and raise `CommandError` if there is none.
    """
    if pick and not can_pick():
        raise CommandError(
            "--pick needs a terminal to show a list in.",
            hint="Name a FILE. Without FILE and --pick, the newest session is taken.",
            exit_code=USAGE,
        )
    files = [file for file in find_files(os.environ, agents) if not file.is_subagent]
    if not files:
        raise nothing_found(agents, os.environ)
    folder = current_folder()
    if pick:
        own = list(files_of_folder(files, folder, os.environ)) if folder else []
        picked = _picked(files, own)
        choice = Choice(name=str(picked.path), found=picked, is_of_folder=picked in own)
    else:
        choice = newest_of(files, folder)
    tell(choice, page)
    return choice


def newest_of(files: Sequence[AgentFile], folder: Path | None) -> Choice:
    """Return the first of `files` whose agent worked in `folder`, or else in a folder above it in the same
    git work tree; otherwise the first one. `files` is not empty.
    """
    folders = _project_folders(folder) if folder else []
    found = (next(files_of_folder(files, one, os.environ), None) for one in folders)
    own = next((file for file in found if file is not None), None)
    file = own or files[0]
    return Choice(name=str(file.path), found=file, is_of_folder=own is not None)


def _project_folders(folder: Path) -> list[Path]:
    """Return `folder`, and those above it up to the top of its git work tree; if it is in none, only it."""
    above = [folder, *folder.parents]
    top = next((at for at, one in enumerate(above) if (one / ".git").exists()), 0)
    return above[: top + 1]


def current_folder() -> Path | None:
    """Return the current folder; None if it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def tell(choice: Choice, page: Page) -> None:
    """Print which file was chosen, on standard error. With `--json`, `Choice.facts` says it."""
    if choice.found is not None and not page.is_json:
        what = "session" if choice.is_of_folder else "no session of this folder; the newest one"
        sys.stderr.write(f"{what}: {describe(choice.found)}\n")
        sys.stderr.flush()


def describe(file: AgentFile) -> str:
    """Return path, agent, age and size of a file as one line."""
    path = one_line(make_encodable(short_path(file.path)))
    return f"{path} ({', '.join(about(file))})"


def about(file: AgentFile) -> list[str]:
    """Return agent, age and, if it is known, size of a session."""
    parts = [TITLES[file.agent], age_text(file.modified_ns / 1e9, time.time())]
    return parts if file.agent in UNSIZED else [*parts, size_text(file.size_bytes)]


def short_path(path: Path) -> str:
    """Return a path with `~` for the home folder."""
    home = os.environ.get("HOME", "").rstrip("/")
    text = str(path)
    return f"~{text[len(home) :]}" if home and text.startswith(f"{home}/") else text


def nothing_found(
    agents: Sequence[str], environ: Mapping[str, str], *, can_name: bool = True
) -> CommandError:
    """Return the error for a machine on which `agents` have written no session. `can_name`: whether the user
    could name a file instead."""
    whose = TITLES[agents[0]] if len(agents) == 1 else "a coding agent"
    places = {agent: describe_places(agent, environ) for agent in agents}
    lines = [
        f"  {TITLES[agent]}: {', '.join(map(short_path, map(Path, found)))}"
        for agent, found in places.items()
    ]
    hint = "\n".join(("compactd looked in these folders:", *map(make_encodable, lines)))
    if "opencode" in agents and uses_database(environ):
        hint += f"\n{DATABASE_HINT}"
    return CommandError(
        f"no session of {whose} was found on this machine.",
        hint=f"{hint}\nName a FILE to use another session file." if can_name else hint,
        exit_code=NOTHING_TO_DO,
        data={
            "looked_in": [make_encodable(str(root)) for agent in agents for root in places_of(agent, environ)]
        },
    )


DATABASE_HINT = (
    "OpenCode keeps its sessions in a database, which compactd does not read. "
    "`opencode export ID > session.json` writes one to a file."
)


# --- the list of --pick -------------------------------------------------------------------------------


def can_pick() -> bool:
    """Return whether the user can pick from a list. Standard output may be a pipe: the list is shown on
    standard error.
    """
    return sys.stdin.isatty() and sys.stderr.isatty()


def _picked(files: Sequence[AgentFile], own: Sequence[AgentFile]) -> AgentFile:
    """Let the user pick one of `files`. Those in `own` are listed first. Raise `CommandError` if the user
    picks none.
    """
    from compactd.cli.agent_files.pick import pick

    first = set(own)
    ordered = [*own, *(file for file in files if file not in first)]
    picked = pick(ordered, len(own))
    if picked is None:
        raise CommandError("no session was picked.", exit_code=NOTHING_TO_DO)
    return picked


# --- what the commands declare ------------------------------------------------------------------------


def agent_name(text: str) -> str:
    """Parse the name of an agent. Raise `ValueError` if it is unknown."""
    name = ALIASES.get(text, text)
    if name not in AGENTS:
        raise ValueError(f"{text!r} is not one of {', '.join(AGENTS)}")
    return name


def agent_names(begin: str) -> list[tuple[str, str]]:
    """Return (name, title) of the agents whose name starts with `begin`, for the shell's completion."""
    return [(name, TITLES[name]) for name in AGENTS if name.startswith(begin)]


SESSION_FILE = Argument(
    "file",
    "the session file; - is standard input (default: this folder's newest session)",
    required=False,
    is_file=True,
)
PICK = Flag("--pick", "choose the session from a list")
AGENT = Option(
    "--agent",
    f"only sessions of this agent: {', '.join(AGENTS)}",
    metavar="NAME",
    read=agent_name,
    completed=agent_names,
)
