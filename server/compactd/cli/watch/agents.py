"""Where coding agents keep the session of the folder one is in.

Claude Code: `~/.claude/projects/<folder>/<id>.jsonl`, or below `CLAUDE_CONFIG_DIR`; the folder's name is the
path with `-` for all that is no letter or digit (code.claude.com, "Hooks", its `transcript_path`, 2026-11).
Codex CLI: `~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl`, or below `CODEX_HOME`; the folder stands
in its header (openai/codex, codex-rs/protocol/src/protocol.rs, read 2026-11). pi:
`~/.pi/agent/sessions/--<path>--/*.jsonl`, or below `PI_CODING_AGENT_DIR`, with `-` for `/`, backslash and
colon (badlogic/pi-mono, packages/coding-agent/docs/session.md and src/core/session-manager.ts, read 2026-11).
Gemini CLI: `~/.gemini/tmp/<project>/chats/session-*.json[l]`, `GEMINI_CLI_HOME` in place of the home; the
project is the path's SHA-256, since 2026 a short name whose folder holds the path in `.project_root`
(google-gemini/gemini-cli, packages/core/src/config/storage.ts and projectRegistry.ts, utils/paths.ts).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path

AGENTS = ("claude-code", "codex", "pi", "gemini")

HEADERS_READ = 20
"""Of Codex's newest files: which of them are of this folder."""
_HEADER_BYTES = 16_384


def newest(agent: str, folder: Path, environ: Mapping[str, str]) -> Path | None:
    """The session file of `agent` that was written last: of `folder`, or of any where that has none.

    `environ` names the user's home and where an agent keeps its files, if not there.
    """
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    return _FINDERS[agent](home, folder, environ)


def _claude_code(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"
    own = root / re.sub(r"[^A-Za-z0-9]", "-", str(folder))
    # Files that begin with `agent-` are those of sub-agents.
    return _last(_sessions(own)) or _last(path for one in _folders(root) for path in _sessions(one))


def _sessions(folder: Path) -> Iterable[Path]:
    return (path for path in _matching(folder, "*.jsonl") if not path.name.startswith("agent-"))


def _codex(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("CODEX_HOME") or home / ".codex") / "sessions"
    # Their folders and names begin with the time: the last by name are the last begun.
    found = sorted(_matching(root, "*/*/*/rollout-*.jsonl"), key=_written)[-HEADERS_READ:]
    for path in reversed(found):
        if _names(path, folder):
            return path
    return found[-1] if found else None


def _names(path: Path, folder: Path) -> bool:
    """Whether a rollout's header says that it was begun in `folder`."""
    from compactd.formats.files.lines import records
    from compactd.formats.files.session_file import text_field
    from compactd.formats.messages.lenient_json import object_in

    try:
        with path.open("rb") as file:
            head = file.read(_HEADER_BYTES * 16)
    except OSError:
        return False
    for _, record in records(head, _unsaid):
        payload = object_in(record, "payload")
        if text_field(payload, "cwd") is not None:
            return text_field(payload, "cwd") == str(folder)
    return False


def _pi(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("PI_CODING_AGENT_DIR") or home / ".pi" / "agent") / "sessions"
    name = re.sub(r"[/:\\]", "-", re.sub(r"^[/\\]+", "", str(folder)))
    own = root / f"--{name}--"
    return _last(_matching(own, "*.jsonl")) or _last(_matching(root, "*/*.jsonl"))


def _gemini(home: Path, folder: Path, environ: Mapping[str, str]) -> Path | None:
    root = Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"
    own = [root / sha256(str(folder).encode()).hexdigest()]
    own += [one for one in _folders(root) if _content(one / ".project_root") == str(folder)]
    mine = [path for one in own for path in _matching(one / "chats", "session-*.json*")]
    return _last(mine) or _last(_matching(root, "*/chats/session-*.json*"))


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


def _matching(root: Path, pattern: str) -> list[Path]:
    try:
        return [path for path in root.glob(pattern) if path.is_file()]
    except OSError:
        return []


def _last(paths: Iterable[Path]) -> Path | None:
    """The one that was written last."""
    return max(paths, key=_written, default=None)


def _written(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:
        return 0, path.name


def _content(path: Path) -> str:
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeError):
        return ""


def _unsaid(text: str) -> None:
    """What is wrong with a line does not matter here."""
