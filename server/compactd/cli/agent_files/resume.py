"""How an agent resumes a session file that compactd wrote: where the file must be, and the command.

- Claude Code: `claude --resume ID` in the session's folder (code.claude.com, "CLI reference"). It opens only
  `~/.claude/projects/<folder>/<ID>.jsonl`.
- Codex CLI: `codex resume ID` (developers.openai.com/codex/cli, "Resume conversations"). It finds
  `~/.codex/sessions/<year>/<month>/<day>/rollout-<time>-<ID>.jsonl` by the id in the name.
- Gemini CLI: `gemini --resume ID` in the session's folder (geminicli.com/docs/cli/session-management). It
  finds `~/.gemini/tmp/<project>/chats/session-<time>-<first 8 characters of ID>.jsonl`.
- pi: `pi --session FILE`, from any folder (badlogic/pi-mono, packages/coding-agent/docs/session.md).
- OpenCode: `opencode import FILE`, then `opencode --session ID` (opencode.ai/docs/cli).
- aider: `aider --restore-chat-history --chat-history-file FILE` (aider.chat/docs/config/options.html).

All of this was read in 2026-11. For the other programs, no command is known that resumes a file.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID, uuid4

from msgspec import Struct

from compactd.cli.agent_files.places import files_of_folder, find_files, places_of, project_name

FOUND_BY_PLACE = ("claude-code", "codex", "gemini-cli", "pi")
"""The agents that find a session by the folder and the name of its file."""
_UUID_CHARS = 36


class Resumption(Struct, frozen=True, kw_only=True):
    """What a user does so that an agent resumes a session file."""

    commands: tuple[str, ...]
    """The shell commands, in order."""
    place: Path | None = None
    """The path at which the agent finds the session; None if it opens a file from any folder."""


def new_session_id(format: str, target: Path | None) -> str:
    """Return the id of a new session for the program with this format.

    If the name of `target`, the file to write, ends with a UUID, the id is that UUID: Claude Code and Codex
    find a session by the name of its file.
    """
    named = _uuid_of(target.stem) if target is not None else None
    if format == "opencode":
        # The form of OpenCode's own ids (sst/opencode, packages/opencode/src/id/id.ts, 2026-11).
        return f"ses_{uuid4().hex[:26]}"
    return named or str(uuid4())


def place_of(
    format: str, session_id: str, working_dir: str | None, source: Path | None, environ: Mapping[str, str]
) -> Path | None:
    """Return the path at which the agent with this format finds the session `session_id` of `working_dir`.
    Nothing needs to exist there. Return None if the agent has no such place, or if the place depends on the
    working directory and that is unknown.

    `source`: the file from which the session was made. If it is in a folder of the agent, the session belongs
    into the same folder. None if that does not matter. `environ` is as in `places.find_files`.
    """
    root = agent_root(format, environ)
    if root is None:
        return None
    now = time.gmtime() if format == "gemini-cli" else time.localtime()
    at = time.strftime("%Y-%m-%dT%H-%M-%S", now)
    if format == "codex":
        day = root.joinpath(*at.partition("T")[0].split("-"))
        return day / f"rollout-{at}-{session_id}.jsonl"
    name = {
        "claude-code": f"{session_id}.jsonl",
        "gemini-cli": f"session-{at[:16]}-{session_id[:8]}.jsonl",
    }.get(format, f"{at}_{session_id}.jsonl")
    if source is not None and source.absolute().is_relative_to(root):
        return source.absolute().parent / name
    if working_dir is None:
        return None
    own = files_of_folder(find_files(environ, [format]), Path(working_dir), environ)
    known = next(
        (file.path.parent for file in own if not file.is_subagent and file.path.is_relative_to(root)), None
    )
    return (known or _new_folder(format, root, working_dir)) / name


def agent_root(format: str, environ: Mapping[str, str]) -> Path | None:
    """Return the folder below which the agent with this format keeps its sessions; None if it has none."""
    return places_of(format, environ)[0] if format in FOUND_BY_PLACE else None


def _new_folder(format: str, root: Path, working_dir: str) -> Path:
    """Return the folder in which the agent would keep its first session for `working_dir`."""
    project = root / project_name(format, working_dir)
    return project / "chats" if format == "gemini-cli" else project


def how_to_resume(
    format: str, written: Path, session_id: str, working_dir: str | None, place: Path | None
) -> Resumption | None:
    """Return how the agent with this format resumes the file `written`; None if no way is known.

    `place` is the result of `place_of`. If the file is not there, the first command copies it.
    """
    # Absolute, because a command before it may change the folder, or another terminal may run it.
    file = shlex.quote(str(written.absolute()))
    match format:
        case "pi":
            return Resumption(commands=(_in_folder(f"pi --session {file}", working_dir),))
        case "aider":
            command = f"aider --restore-chat-history --chat-history-file {file}"
            return Resumption(commands=(_in_folder(command, working_dir),))
        case "opencode":
            load = _in_folder(f"opencode import {file}", working_dir)
            return Resumption(commands=(load, f"opencode --session {session_id}"))
        case "claude-code":
            command = f"claude --resume {session_id}"
        case "codex":
            command = f"codex resume {session_id}"
        case "gemini-cli":
            command = f"gemini --resume {session_id}"
        case _:
            return None
    if place is None:
        return None
    commands = [_in_folder(command, working_dir)]
    if not _is_found(format, written, place):
        folder, target = shlex.quote(str(place.parent)), shlex.quote(str(place))
        commands.insert(0, f"mkdir -p {folder} && cp -n {file} {target}")
    return Resumption(commands=tuple(commands), place=place)


def _is_found(format: str, written: Path, place: Path) -> bool:
    """Return whether the agent finds the file where it is: in the right folder and with the right name. The
    time in the name may differ.
    """
    path = written.absolute()
    if format == "claude-code":
        return path == place
    start = place.name.partition("-")[0]
    is_named = path.name.startswith(f"{start}-") and path.name[-14:] == place.name[-14:]
    # Codex has a folder for each day below its root.
    return is_named and (
        path.parent == place.parent or (format == "codex" and path.parents[3] == place.parents[3])
    )


def _in_folder(command: str, working_dir: str | None) -> str:
    """Return the command so that it runs in the session's folder."""
    if working_dir is None or working_dir == str(Path.cwd()):
        return command
    return f"cd {shlex.quote(working_dir)} && {command}"


def _uuid_of(name: str) -> str | None:
    """Return the UUID at the end of a file's name, without its suffix; None if there is none."""
    last = name[-_UUID_CHARS:]
    try:
        return last if str(UUID(last)) == last else None
    except ValueError:
        return None
