"""Find the session file that a coding agent wrote last for a folder.

- Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, or below `CLAUDE_CONFIG_DIR`. `<folder>` is the path
  with `-` for everything that is not a letter or digit (code.claude.com, "Hooks", `transcript_path`,
  2026-11).
- Codex CLI: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`, or below `CODEX_HOME`. The file's
  header names the folder (openai/codex, codex-rs/protocol/src/protocol.rs, read 2026-11).
- pi: `~/.pi/agent/sessions/--<path>--/*.jsonl`, or below `PI_CODING_AGENT_DIR`. `<path>` is the path with `-`
  for `/`, backslash and colon (badlogic/pi-mono, packages/coding-agent/docs/session.md and
  src/core/session-manager.ts, read 2026-11).
- Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json[l]`. `GEMINI_CLI_HOME` replaces the home folder.
  `<project>` is the SHA-256 of the path. Since 2026 it is a short name, and the file `.project_root` in that
  folder contains the path (google-gemini/gemini-cli, packages/core/src/config/storage.ts, projectRegistry.ts
  and utils/paths.ts, read 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path

AGENTS = ("claude-code", "codex", "pi", "gemini")

MAX_HEADERS_READ = 20
"""How many of Codex's newest session files are opened to see whether they belong to the folder."""
_HEADER_BYTES = 16_384


def newest(agent: str, folder: Path, environ: Mapping[str, str]) -> Path | None:
    """Return the session file that `agent` wrote last for `folder`; if there is none, the one that it wrote
    last for any folder. Return None if the agent has written no session file.

    `environ` contains the user's home, and where the agent keeps its files if not in the default place.
    """
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    return _FINDERS[agent](home, folder, environ)


def _claude_code(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    own = root / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    # Files that begin with `agent-` belong to sub-agents.
    return _last(_sessions(own)) or _last(path for one in _folders(root) for path in _sessions(one))


def _sessions(folder: Path) -> Iterable[Path]:
    return (path for path in _find_files(folder, "*.jsonl") if not path.name.startswith("agent-"))


def _codex(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
    # Only the files that were written last are opened.
    found = sorted(_find_files(root, "*/*/*/rollout-*.jsonl"), key=_age_key)[-MAX_HEADERS_READ:]
    for path in reversed(found):
        if _names_folder(path, folder):
            return path
    return found[-1] if found else None


def _names_folder(path: Path, folder: Path) -> bool:
    """Return whether the header of the Codex file `path` names `folder` as its working directory."""
    from compactd.formats.files.json_lines import records
    from compactd.formats.files.session_file import text_field
    from compactd.formats.messages.lenient_json import object_in

    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES * 16)
    except OSError:
        return False
    for _, record in records(head, _ignore):
        payload = object_in(record, "payload")
        if text_field(payload, "cwd") is not None:
            return text_field(payload, "cwd") == str(folder)
    return False


def _pi(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"
    name = re.sub(r"[/:\\]", "-", re.sub(r"^[/\\]+", "", str(folder)))
    own = root / f"--{name}--"
    return _last(_find_files(own, "*.jsonl")) or _last(_find_files(root, "*/*.jsonl"))


def _gemini(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"
    own = [root / sha256(str(folder).encode()).hexdigest()]
    own += [one for one in _folders(root) if _content(one / ".project_root") == str(folder)]
    mine = [path for one in own for path in _find_files(one / "chats", "session-*.json*")]
    return _last(mine) or _last(_find_files(root, "*/chats/session-*.json*"))


_FINDERS: Mapping[str, Callable[[Path, Path, Mapping[str, str]], Path | None]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "pi": _pi,
    "gemini": _gemini,
}


def _folders(root: Path) -> list[Path]:
    try:
        return [path for path in root.iterdir() if path.is_dir()]
    except OSError:
        return []


def _find_files(root: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in root.glob(pattern) if path.is_file()]
    except OSError:
        return []


def _last(paths: Iterable[Path]) -> Path | None:
    """Return the file that was written last; None if `paths` is empty."""
    return max(paths, key=_age_key, default=None)


def _age_key(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def _ignore(text: str) -> None:
    """Ignore a warning about a damaged line: only the header is looked for."""
