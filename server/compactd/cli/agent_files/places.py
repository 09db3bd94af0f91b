"""Find the session files that coding agents keep on this machine. Names and times are read, and the head of a
few files.

- Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, or below `CLAUDE_CONFIG_DIR`. `<folder>` is the path
  with `-` for everything that is not a letter or digit (code.claude.com, "Hooks", `transcript_path`,
  2026-11). Sub-agents write `agent-<id>.jsonl` there or in `<id>/subagents/`. compactd's session store for
  the Claude Agent SDK has the same layout with other names, in compactd's data folder.
- Codex CLI: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`, or below `CODEX_HOME`. The file's
  header names the folder (openai/codex, codex-rs/protocol/src/protocol.rs, read 2026-11).
- Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json[l]`. `GEMINI_CLI_HOME` replaces the home folder.
  `<project>` is the SHA-256 of the path. Since 2026 it is a short name, and the file `.project_root` in that
  folder contains the path (google-gemini/gemini-cli, packages/core/src/config/storage.ts, projectRegistry.ts
  and utils/paths.ts, read 2026-11).
- pi: `~/.pi/agent/sessions/--<path>--/*.jsonl`, or below `PI_CODING_AGENT_DIR`. `<path>` is the path with `-`
  for `/`, backslash and colon (badlogic/pi-mono, packages/coding-agent/docs/session.md and
  src/core/session-manager.ts, read 2026-11).
- OpenCode: `~/.local/share/opencode/storage/session/<project>/<session>.json`, or below `XDG_DATA_HOME`. The
  file names the session's folder, and a sub-agent's file also its parent; messages are in
  `storage/message/<session>/` (anomalyco/opencode, packages/opencode/src/storage/storage.ts, global/index.ts
  and storage/json-migration.ts, read 2026-11). Since 1.2, OpenCode keeps sessions in the database
  `opencode.db`, which compactd does not read; `uses_database` says whether it is there.
- Cline's extension: `<editor>/User/globalStorage/saoudrizwan.claude-dev/tasks/<id>/`, there
  `api_conversation_history.json` (cline/cline, src/core/storage/disk.ts, read 2026-11). `<editor>` is
  `~/.config/<name>` or below `XDG_CONFIG_HOME`, on macOS `~/Library/Application Support/<name>`
  (microsoft/vscode, src/vs/platform/environment/node/userDataPath.ts, read 2026-11), and
  `~/.vscode-server/data` for remote work. The first message names the folder (cline/cline,
  src/core/task/index.ts, "Current Working Directory", read 2026-11).
- Cline's command line: `~/.cline/data/sessions/<id>/<id>.messages.json`. `<id>.json` next to it names the
  folder; other names than `<id>` in the folder are sub-agents' (cline/cline,
  sdk/packages/shared/src/storage/paths.ts, sdk/packages/core/src/session/session-artifacts.ts and
  models/session-manifest.ts, read 2026-11). Earlier versions kept `~/.cline/data/tasks/<id>/` like the
  extension (cli/src/vscode-context.ts). `CLINE_DIR`, `CLINE_DATA_DIR` and `CLINE_SESSION_DATA_DIR` replace
  these folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.storage.paths import SDK_TRANSCRIPTS, data_folder, file_stem

AGENTS = ("claude-code", "codex", "gemini-cli", "pi", "opencode", "cline")
"""The agents whose files are found, in the order in which they are listed."""

ALIASES = {"gemini": "gemini-cli"}
"""Earlier names of agents, which options still accept -> the name."""

TITLES = {
    "claude-code": "Claude Code",
    "codex": "Codex CLI",
    "gemini-cli": "Gemini CLI",
    "pi": "pi",
    "opencode": "OpenCode",
    "cline": "Cline",
}
"""Agent -> its name in texts for the user."""

UNSIZED = ("opencode",)
"""The agents whose session is a folder of many small files. `AgentFile.size_bytes` is the size of the first
one only.
"""

MAX_HEADERS_READ = 20
"""How many of an agent's newest session files are opened to see whether they belong to a folder. OpenCode's
and Cline's small files are not counted.
"""
_HEADER_BYTES = 262_144

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf")
"""VS Code, and editors made of it, that Cline's extension runs in."""
_CLINE_TASKS = "User/globalStorage/saoudrizwan.claude-dev/tasks"
_CLINE_HISTORY = "api_conversation_history.json"
_CLINE_MESSAGES = ".messages.json"
_PROJECT_ROOT = ".project_root"


class AgentFile(Struct, frozen=True, kw_only=True):
    """One session file of an agent."""

    agent: str
    """One of `AGENTS`."""
    path: Path
    size_bytes: int
    """The size of `path`. For an agent of `UNSIZED`, this is only a small part of the session."""
    modified_ns: int
    """When it was written last, in nanoseconds since 1970 (UTC)."""
    is_subagent: bool = False
    """True if a sub-agent wrote it. Its session is a part of another file's session."""


def find_files(environ: Mapping[str, str], agents: Sequence[str] = AGENTS) -> list[AgentFile]:
    """Return all session files of `agents`, the one that was written last first. Only OpenCode's files, which
    are small, are opened.

    `environ` contains the user's home, and where an agent keeps its files if not in the default place.
    Folders that cannot be read are skipped. O(files).
    """
    found = [
        file
        for agent in agents
        for root in places_of(agent, environ)
        for entry in _FINDERS[agent](root)
        if (file := _agent_file(agent, entry)) is not None
    ]
    return sorted(found, key=_age_key, reverse=True)


def uses_database(environ: Mapping[str, str]) -> bool:
    """Return whether OpenCode keeps sessions in a database, which compactd does not read."""
    return (_opencode_data(environ) / "opencode.db").is_file()


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
    """Yield those of `files` whose agent worked in `folder`, in the same order. Of Codex and of Cline's
    extension, the first `MAX_HEADERS_READ` files are opened.
    """
    owned: dict[str, Callable[[AgentFile], bool]] = {}
    for file in files:
        if file.agent not in owned:
            owned[file.agent] = _FOLDER_TESTS[file.agent](folder, environ)
        if owned[file.agent](file):
            yield file


def places_of(agent: str, environ: Mapping[str, str]) -> list[Path]:
    """Return the folders below which `agent` keeps its session files."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    match agent:
        case "claude-code":
            own = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
            stored = data_folder(environ) / SDK_TRANSCRIPTS
            return [own, stored] if stored.is_dir() else [own]
        case "codex":
            return [Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"]
        case "pi":
            return [Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"]
        case "opencode":
            return [_opencode_data(environ) / "storage" / "session"]
        case "cline":
            data = Path(
                environ.get("CLINE_DATA_DIR") or Path(environ.get("CLINE_DIR") or home / ".cline") / "data"
            )
            config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
            above = [*(config / name for name in _EDITORS), home / ".vscode-server" / "data"]
            above += [home / "Library" / "Application Support" / name for name in _EDITORS]
            sessions = Path(environ.get("CLINE_SESSION_DATA_DIR") or data / "sessions")
            return [sessions, data / "tasks", *(one / _CLINE_TASKS for one in above)]
        case _:
            return [Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"]


def describe_places(agent: str, environ: Mapping[str, str]) -> list[str]:
    """Return the same folders as `places_of` for a text. The folders of Cline's editors are one item."""
    roots = [str(root) for root in places_of(agent, environ)]
    if agent != "cline":
        return roots
    own = [root for root in roots if not root.endswith(_CLINE_TASKS)]
    return [*own, f"{_CLINE_TASKS} of VS Code, VSCodium, Cursor and Windsurf"]


def _opencode_data(environ: Mapping[str, str]) -> Path:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    return Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"


# --- which files there are ----------------------------------------------------------------------------

Found = Iterator[os.DirEntry[str]]


def _claude_code(root: Path) -> Found:
    for project in _folders(root):
        for entry in _entries(project):
            if entry.name.endswith(".jsonl"):
                yield entry
            elif _is_folder(entry):
                yield from _files(Path(entry.path) / "subagents", ".jsonl")


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


def _opencode(root: Path) -> Found:
    for project in _folders(root):
        yield from _files(project, ".json")


def _cline(root: Path) -> Found:
    for session in _folders(root):
        yield from _files(session, (_CLINE_MESSAGES, _CLINE_HISTORY))


_FINDERS: Mapping[str, Callable[[Path], Found]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini,
    "pi": _pi,
    "opencode": _opencode,
    "cline": _cline,
}


def _agent_file(agent: str, entry: os.DirEntry[str]) -> AgentFile | None:
    """Return the session file behind a folder's entry; None if it is no file or has vanished."""
    try:
        if not entry.is_file():
            return None
        about = entry.stat()
    except OSError:
        return None
    path, modified_ns, is_subagent = Path(entry.path), about.st_mtime_ns, False
    match agent:
        case "claude-code":
            is_subagent = entry.name.startswith("agent-")
        case "cline" if entry.name.endswith(_CLINE_MESSAGES):
            is_subagent = entry.name.removesuffix(_CLINE_MESSAGES) != path.parent.name
        case "opencode":
            is_subagent = b'"parentID":' in _head(path)
            modified_ns = max(modified_ns, _messages_time(path))
        case _:
            pass
    return AgentFile(
        agent=agent,
        path=path,
        size_bytes=about.st_size,
        modified_ns=modified_ns,
        is_subagent=is_subagent,
    )


def _messages_time(path: Path) -> int:
    """Return when a message was last added to OpenCode's session `path`; 0 if it has no messages."""
    try:
        return (path.parents[2] / "message" / path.stem).stat().st_mtime_ns
    except OSError:
        return 0


def _folders(root: Path) -> list[Path]:
    return [Path(entry.path) for entry in _entries(root) if _is_folder(entry)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _files(folder: Path, ending: str | tuple[str, ...], start: str = "") -> Found:
    for entry in _entries(folder):
        if entry.name.endswith(ending) and entry.name.startswith(start):
            yield entry


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _age_key(file: AgentFile) -> tuple[int, str]:
    return file.modified_ns, file.path.name


# --- which of them belong to a folder -----------------------------------------------------------------

IsOwn = Callable[[AgentFile], bool]


def project_name(agent: str, folder: str) -> str:
    """Return the name of the folder in which Claude Code, pi or Gemini CLI keeps the sessions of the project
    `folder`, below its own folder.
    """
    match agent:
        case "claude-code":
            return re.sub(r"[^A-Za-z0-9]", "-", folder)
        case "pi":
            name = re.sub(r"[/:\\]", "-", re.sub(r"^[/\\]+", "", folder))
            return f"--{name}--"
        case _:
            from hashlib import sha256

            return sha256(folder.encode("utf-8", "surrogateescape")).hexdigest()


def _claude_code_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    name = project_name("claude-code", str(folder))
    names = (name, file_stem(name))
    starts = tuple(f"{root / one}{os.sep}" for root in places_of("claude-code", environ) for one in names)
    return lambda file: str(file.path).startswith(starts)


def _pi_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    name = project_name("pi", str(folder))
    return lambda file: file.path.parent.name == name


def _gemini_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    projects = {
        project for root in places_of("gemini-cli", environ) for project in _gemini_projects(root, folder)
    }
    return lambda file: file.path.parent.parent in projects


def named_folder(file: Path) -> str | None:
    """Return the folder that Gemini CLI names next to its session `file`, which does not name it; None if it
    names none.
    """
    try:
        return (file.parent.parent / _PROJECT_ROOT).read_text("utf-8").strip() or None
    except (OSError, UnicodeError):
        return None


def _gemini_projects(root: Path, folder: Path) -> Iterator[Path]:
    """Yield the folders below `root` that belong to the project `folder`."""
    yield root / project_name("gemini-cli", str(folder))
    for project in _folders(root):
        try:
            if (project / _PROJECT_ROOT).read_text("utf-8").strip() == str(folder):
                yield project
        except (OSError, UnicodeError):
            continue


class _CodexPayload(Struct):
    cwd: str | None = None


class _CodexRecord(Struct):
    payload: _CodexPayload


def _codex_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    opened = 0

    def is_own(file: AgentFile) -> bool:
        nonlocal opened
        opened += 1
        return opened <= MAX_HEADERS_READ and _header_names_folder(file.path, folder)

    return is_own


def _header_names_folder(path: Path, folder: Path) -> bool:
    """Return whether the header of the Codex file `path` names `folder` as its working directory."""
    for line in _head(path).split(b"\n"):
        try:
            working_dir = msgspec.json.decode(line, type=_CodexRecord).payload.cwd
        except msgspec.DecodeError:
            continue
        if working_dir is not None:
            return working_dir == str(folder)
    return False


def _opencode_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    return lambda file: _field(file.path, "directory") == str(folder)


def _cline_folder(folder: Path, environ: Mapping[str, str]) -> IsOwn:
    opened = 0
    mark = b"Current Working Directory (%b) Files" % _in_json(folder)

    def is_own(file: AgentFile) -> bool:
        nonlocal opened
        if file.path.name.endswith(_CLINE_MESSAGES):
            about = file.path.with_name(f"{file.path.parent.name}.json")
            return _field(about, "cwd") == str(folder)
        opened += 1
        return opened <= MAX_HEADERS_READ and mark in _head(file.path)

    return is_own


_FOLDER_TESTS: Mapping[str, Callable[[Path, Mapping[str, str]], IsOwn]] = {
    "claude-code": _claude_code_folder,
    "codex": _codex_folder,
    "gemini-cli": _gemini_folder,
    "pi": _pi_folder,
    "opencode": _opencode_folder,
    "cline": _cline_folder,
}


def _in_json(folder: Path) -> bytes:
    """Return a path as it is written inside a JSON string."""
    return msgspec.json.encode(str(folder).encode("utf-8", "replace").decode())[1:-1]


def _field(path: Path, name: str) -> str | None:
    """Return a text field of the JSON object in the small file `path`; None if there is none."""
    try:
        found = msgspec.json.decode(_head(path))
    except msgspec.DecodeError:
        return None
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def _head(path: Path) -> bytes:
    """Return the first bytes of a file; nothing if it cannot be read."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(_HEADER_BYTES)
    except OSError:
        return b""
