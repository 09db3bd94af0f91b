"""Find out which model an agent will use, and how large its window is, from the agent's own settings.

Only the names of models and numbers of tokens are read:

- Claude Code: `ANTHROPIC_MODEL`, then `model` in `.claude/settings.local.json` and `.claude/settings.json` of
  the folder, then in `settings.json` of the user (code.claude.com, "Model configuration"). Its window is
  200,000 tokens unless the name ends with `[1m]` (2.1.330). `CLAUDE_CODE_AUTO_COMPACT_WINDOW`, or
  `autoCompactWindow` in the settings of the user, makes it smaller.
- Codex CLI: `model` and `model_context_window` in `config.toml`, those that `profile` names first
  (developers.openai.com/codex, "Configuration reference"). Its own table of models gives most of them 272,000
  tokens (0.169.0).
- Gemini CLI: `GEMINI_MODEL`, then `model.name` in `.gemini/settings.json` of the folder and of the user
  (geminicli.com, "Model routing", 0.61.0).
- pi: `defaultProvider` and `defaultModel` in its `settings.json` (pi's "Settings Reference", 0.87.1), and
  `contextWindow` in its `models.json`.
- OpenCode: `model`, and `limit.context` of that model, in `opencode.json[c]` of the folder and
  of the user (opencode.ai, "Config", 1.18.33).

All of this was read or run in 2026-11.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from compactd.cli.agent_files.choose import short_path
from compactd.cli.agent_files.places import TITLES, places_of
from compactd.integrations.hooks.settings_text import Node, NotSettings, parse

CLAUDE_CODE_WINDOW = 200_000
CODEX_WINDOW = 272_000
_MILLION = 1_000_000
_LONG_WINDOW = "[1m]"
MAX_SETTINGS_BYTES = 1_000_000

DEFAULTS: Mapping[str, tuple[str, int]] = {
    "claude-code": ("claude-sonnet-4-5", CLAUDE_CODE_WINDOW),
    "codex": ("gpt-5.5", CODEX_WINDOW),
    "gemini-cli": ("gemini-2.5-pro", 1_048_576),
}
"""Agent -> (a model that it uses without settings, the window that it assumes). pi and OpenCode have none:
they use the model that the user chose last.
"""


class TargetModel(Struct, frozen=True, kw_only=True):
    """The model that an agent will continue a session with."""

    model: str | None = None
    window: int | None = None
    """The window in tokens; None: what the registry says about the model."""
    max_window: int | None = None
    """The largest window that the agent uses, whatever the model could; None if there is no such limit."""
    origin: str
    """Where the model comes from, in words."""
    is_named: bool = True
    """False if the model is only assumed."""


def target_model(
    agent: str,
    folder: Path,
    session_model: str | None,
    environ: Mapping[str, str],
    *,
    given: str | None = None,
) -> TargetModel:
    """Return the model with which `agent` would continue a session in `folder`: `given`, otherwise the one
    that its settings name, otherwise its default; for an agent without a default, `session_model`. Settings
    that cannot be read are skipped. Reads a few small files.
    """
    if given is not None:
        largest = {"claude-code": _claude_code_window(given, environ), "codex": CODEX_WINDOW}.get(agent)
        return TargetModel(model=given, max_window=largest, origin="given by you")
    found = _READERS[agent](folder, environ)
    if found is not None:
        return found
    none_named = f"{TITLES[agent]}'s settings name none"
    if agent not in DEFAULTS:
        origin = f"assumed, as in the session: {none_named}" if session_model else f"not known: {none_named}"
        return TargetModel(model=session_model, origin=origin, is_named=False)
    model, window = DEFAULTS[agent]
    if agent == "claude-code":
        window = _claude_code_window(model, environ)
    return TargetModel(model=model, window=window, origin=f"assumed: {none_named}", is_named=False)


def _claude_code(folder: Path, environ: Mapping[str, str]) -> TargetModel | None:
    own = folder / ".claude"
    paths = [own / "settings.local.json", own / "settings.json", _claude_code_user(environ)]
    named, origin = environ.get("ANTHROPIC_MODEL", ""), "named in ANTHROPIC_MODEL"
    if not named:
        named, origin = _first_text(paths, ("model",))
    if not named or named == "default":
        return None
    return TargetModel(model=named, max_window=_claude_code_window(named, environ), origin=origin)


def _claude_code_window(model: str, environ: Mapping[str, str]) -> int:
    """Return the window that Claude Code uses with a model of any size."""
    usual = _MILLION if model.endswith(_LONG_WINDOW) else CLAUDE_CODE_WINDOW
    return min(usual, _claude_code_limit(environ) or usual)


def _claude_code_user(environ: Mapping[str, str]) -> Path:
    """Return Claude Code's settings of the user."""
    return places_of("claude-code", environ)[0].parent / "settings.json"


def _claude_code_limit(environ: Mapping[str, str]) -> int | None:
    """Return the window that the user set for Claude Code's automatic compaction."""
    given = environ.get("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "")
    if given.isdecimal() and len(given) < 12:
        return int(given) or None
    return _number(_settings(_claude_code_user(environ)), "autoCompactWindow")


def _codex(folder: Path, environ: Mapping[str, str]) -> TargetModel | None:
    path = places_of("codex", environ)[0].parent / "config.toml"
    settings = _toml(path)
    profile = _text(settings, "profile")
    chosen = ("profiles", profile) if profile else ()
    model = _text(settings, *chosen, "model") or _text(settings, "model")
    window = _number(settings, *chosen, "model_context_window") or _number(settings, "model_context_window")
    if not model and window is None:
        return None
    return TargetModel(
        model=model or DEFAULTS["codex"][0],
        window=window,
        max_window=None if window else CODEX_WINDOW,
        origin=_named_in(path),
    )


def _gemini(folder: Path, environ: Mapping[str, str]) -> TargetModel | None:
    own = folder / ".gemini" / "settings.json"
    user = places_of("gemini-cli", environ)[0].parent / "settings.json"
    named, origin = environ.get("GEMINI_MODEL", ""), "named in GEMINI_MODEL"
    if not named:
        named, origin = _first_text([own, user], ("model", "name"), ("model",))
    # Other names, such as `auto` and `pro`, let Gemini CLI choose.
    return TargetModel(model=named, origin=origin) if named.startswith("gemini-") else None


def _pi(folder: Path, environ: Mapping[str, str]) -> TargetModel | None:
    agent = places_of("pi", environ)[0].parent
    path = agent / "settings.json"
    settings = _settings(path)
    provider, model = _text(settings, "defaultProvider"), _text(settings, "defaultModel")
    if not model:
        return None
    declared = _at(_settings(agent / "models.json"), "providers", provider, "models")
    rows = declared if isinstance(declared, list) else []
    windows = (_number(row, "contextWindow") for row in rows if _text(row, "id") == model)
    return TargetModel(
        model=f"{provider}/{model}" if provider else model,
        window=next(windows, None),
        origin=_named_in(path),
    )


def _opencode(folder: Path, environ: Mapping[str, str]) -> TargetModel | None:
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or Path.home())
    user = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    paths = [one / name for one in (folder, user) for name in ("opencode.json", "opencode.jsonc")]
    if named := environ.get("OPENCODE_CONFIG"):
        paths.insert(2, Path(named))
    model, origin = _first_text(paths, ("model",))
    if not model:
        return None
    provider, _, name = model.partition("/")
    limit = ("provider", provider, "models", name, "limit", "context")
    window = next((n for path in paths if (n := _number(_settings(path), *limit))), None)
    return TargetModel(model=model, window=window, origin=origin)


_READERS: Mapping[str, Callable[[Path, Mapping[str, str]], TargetModel | None]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini-cli": _gemini,
    "pi": _pi,
    "opencode": _opencode,
}


# --- settings files -----------------------------------------------------------------------------------


def _first_text(paths: Sequence[Path], *keys: tuple[str, ...]) -> tuple[str, str]:
    """Return (the first text that one of `keys` leads to in one of the files `paths`, where it is); empty if
    there is none."""
    for path in paths:
        settings = _settings(path)
        found = next((text for key in keys if (text := _text(settings, *key))), "")
        if found:
            return found, _named_in(path)
    return "", ""


def _named_in(path: Path) -> str:
    return f"named in {short_path(path)}"


def _settings(path: Path) -> object:
    """Return the object in a JSON file, which may have comments; None if it cannot be read."""
    text = _read(path)
    try:
        return _value(text, parse(text)) if text else None
    except NotSettings:
        return None


def _value(text: str, node: Node) -> object:
    match node.kind:
        case "object":
            return {member.key: _value(text, member.node) for member in node.members}
        case "array":
            return [_value(text, member.node) for member in node.members]
        case "string":
            return node.value
        case _:
            return msgspec.json.decode(text[node.start : node.end].encode())


def _toml(path: Path) -> object:
    import tomllib

    try:
        return tomllib.loads(_read(path))
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


def _read(path: Path) -> str:
    """Return the text of a small file; empty if it cannot be read, or is large."""
    try:
        if path.stat().st_size > MAX_SETTINGS_BYTES or not path.is_file():
            return ""
        return path.read_text("utf-8")
    except (OSError, UnicodeError):
        return ""


def _at(settings: object, *keys: str) -> object:
    for key in keys:
        settings = settings.get(key) if isinstance(settings, dict) else None
    return settings


def _text(settings: object, *keys: str) -> str:
    """Return the text at `keys`; empty if there is none."""
    found = _at(settings, *keys)
    return found if isinstance(found, str) else ""


def _number(settings: object, *keys: str) -> int | None:
    """Return the positive whole number at `keys`; None if there is none."""
    found = _at(settings, *keys)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
