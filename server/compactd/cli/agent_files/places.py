"""Find the session files that coding agents keep on this machine. Only names and times are read, and for
Codex the head of a few files.

- Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, or below `CLAUDE_CONFIG_DIR`. `<folder>` is the path
  with `-` for everything that is not a letter or digit (code.claude.com, "Hooks", `transcript_path`,
  2026-11). Sub-agents write `agent-<id>.jsonl` there or in `<id>/subagents/`.
- Codex CLI: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`, or below `CODEX_HOME`. The file's
  header names the folder (openai/codex, codex-rs/protocol/src/protocol.rs, read 2026-11).
- Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json[l]`. `GEMINI_CLI_HOME` replaces the home folder.
  `<project>` is the SHA-256 of the path. Since 2026 it is a short name, and the file `.project_root` in that
  folder contains the path (google-gemini/gemini-cli, packages/core/src/config/storage.ts, projectRegistry.ts
  and utils/paths.ts, read 2026-11).
- pi: `~/.pi/agent/sessions/--<path>--/*.jsonl`, or below `PI_CODING_AGENT_DIR`. `<path>` is the path with `-`
  for `/`, backslash and colon (badlogic/pi-mono, packages/coding-agent/docs/session.md and
  src/core/session-manager.ts, read 2026-11).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

AGENTS = ("claude-code", "codex", "gemini-cli", "pi")
"""The agents whose files are found, in the order in which they are listed."""

MAX_HEADERS_READ = 20
"""How many of Codex's newest session files are opened to see whether they belong to a folder."""
_HEADER_BYTES = 262_144


class AgentFile(Struct, frozen=True, kw_only=True):
    """One session file of an agent."""

    agent: str
    """One of `AGENTS`."""
    path: Path
    size_bytes: int
    modified_ns: int
    """When it was written last, in nanoseconds since 1970 (UTC)."""
    is_subagent: bool = False
    """True if a sub-agent wrote it. Its session is a part of another file's session."""


def find_files(environ: Mapping[str, str], agents: Sequence[str] = AGENTS) -> list[AgentFile]:
    """Return all session files of `agents`, the one that was written last first. No file is opened.

    `environ` contains the user's home, and where an agent keeps its files if not in the default place.
    Folders that cannot be read are skipped. O(files).
    """
    found = [
        file
        for agent in agents
        for path, entry in _FINDERS[agent](_root(agent, environ))
        if (file := _agent_file(agent, path, entry)) is not None
    ]
    return sorted(found, key=_age_key, reverse=True)


def folder_exists(agent: str, environ: Mapping[str, str]) -> bool:
    """Return whether the folder in which `agent` keeps its sessions exists."""
    return _root(agent, environ).is_dir()


def newest(agents: Sequence[str], folder: Path, environ: Mapping[str, str]) -> AgentFile | None:
    """Return the session file that one of `agents` wrote last for `folder`; if there is none, the one that
    was written last for any folder. Return None if these agents have written no session file. Files of
    sub-agents are not considered.
    """
    files = [file for file in find_files(environ, agents) if not file.is_subagent]
    own = files_of_folder(files, folder, environ)
    return next(own, None) or (files[0] if files else None)


def files_of_folder(
    files: Iterable[AgentFile], folder: Path, environ: Mapping[str, str]
) -> Iterator[AgentFile]:
    """Yield those of `files` whose agent worked in `folder`, in the same order. Of Codex's files, the first
    `MAX_HEADERS_READ` are opened.
    """
    gemini_projects: set[Path] | None = None
    opened = 0
    for file in files:
        match file.agent:
            case "claude-code":
                root = _root(file.agent, environ)
                is_own = file.path.is_relative_to(root / re.sub(r"[^A-Za-z0-9]", "-", str(folder)))
            case "pi":
                name = re.sub(r"[/:\\]", "-", re.sub(r"^[/\\]+", "", str(folder)))
                is_own = file.path.parent.name == f"--{name}--"
            case "gemini-cli":
                if gemini_projects is None:
                    gemini_projects = set(_gemini_projects(_root(file.agent, environ), folder))
                is_own = file.path.parent.parent in gemini_projects
            case _:
                opened += 1
                is_own = opened <= MAX_HEADERS_READ and _header_names_folder(file.path, folder)
        if is_own:
            yield file


def _root(agent: str, environ: Mapping[str, str]) -> Path:
    """Return the folder below which `agent` keeps its session files."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    match agent:
        case "claude-code":
            return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
        case "codex":
            return Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
        case "pi":
            return Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"
        case _:
            return Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"


Found = Iterator[tuple[Path, os.DirEntry[str]]]


def _claude_code(root: Path) -> Found:
    for project in _folders(root):
        yield from _files(project, ".jsonl")
        for session in _folders(project):
            yield from _files(session / "subagents", ".jsonl")


def _codex(root: Path) -> Found:
    for year in _folders(root):
        for month in _folders(year):
            for day in _folders(month):
                yield from _files(day, ".jsonl", "rollout-")


def _pi(root: Path) -> Found:
    for project in _folders(root):
        yield from _files(project, ".jsonl")


def _gemini(root: Path) -> Found:
    for project in _folders(root):
        yield from _files(project / "chats", (".json", ".jsonl"), "session-")


_FINDERS: Mapping[str, Callable[[Path], Found]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini,
    "pi": _pi,
}


def _gemini_projects(root: Path, folder: Path) -> Iterator[Path]:
    """Yield the folders below `root` that belong to the project `folder`."""
    yield root / sha256(str(folder).encode()).hexdigest()
    for project in _folders(root):
        try:
            if (project / ".project_root").read_text("utf-8").strip() == str(folder):
                yield project
        except (OSError, UnicodeError):
            continue


def _header_names_folder(path: Path, folder: Path) -> bool:
    """Return whether the header of the Codex file `path` names `folder` as its working directory."""
    from compactd.formats.files.json_lines import records
    from compactd.formats.files.session_file import text_field
    from compactd.formats.messages.lenient_json import object_in

    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES)
    except OSError:
        return False
    for _, record in records(head, _ignore):
        working_dir = text_field(object_in(record, "payload"), "cwd")
        if working_dir is not None:
            return working_dir == str(folder)
    return False


def _agent_file(agent: str, path: Path, entry: os.DirEntry[str]) -> AgentFile | None:
    """Return the session file behind a folder's entry; None if it is no file or has vanished."""
    try:
        if not entry.is_file():
            return None
        about = entry.stat()
    except OSError:
        return None
    is_subagent = agent == "claude-code" and entry.name.startswith("agent-")
    return AgentFile(
        agent=agent,
        path=path,
        size_bytes=about.st_size,
        modified_ns=about.st_mtime_ns,
        is_subagent=is_subagent,
    )


def _folders(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            return [root / entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []


def _files(folder: Path, ending: str | tuple[str, ...], start: str = "") -> Found:
    try:
        with os.scandir(folder) as entries:
            found = [one for one in entries if one.name.endswith(ending) and one.name.startswith(start)]
    except OSError:
        return
    yield from ((folder / entry.name, entry) for entry in found)


def _age_key(file: AgentFile) -> tuple[int, str]:
    return file.modified_ns, file.path.name


def _ignore(text: str) -> None:
    """Ignore a warning about a damaged line: only the header is looked for."""
