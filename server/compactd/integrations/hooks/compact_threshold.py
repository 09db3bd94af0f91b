"""Determine at how many tokens Claude Code compacts, from its window and the user's settings.

What the status line gets does not contain it: the window that it names stays the model's (2.1.330, run
2026-11). The numbers were seen in runs of 2.1.330: 167,000 of 200,000 tokens; 67,000 with a window set to
100,000; 90,000 of 200,000 with an override of 50 percent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct

T = TypeVar("T")

SUMMARY_BUFFER: Final = 20_000
"""Tokens of the window that are kept free for the summary."""
BUFFER: Final = 33_000
"""Claude Code compacts this many tokens before the window is full. The number is equal to
`recorded_window.CLAUDE_CODE_BUFFER`, which names the sources.
"""
MAX_SETTINGS_BYTES: Final = 1 << 21
WINDOW_VARIABLE: Final = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
PERCENT_VARIABLE: Final = "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"
_DISABLED: Final = ("DISABLE_AUTO_COMPACT", "DISABLE_COMPACT")
_FALSE: Final = ("", "0", "false", "no", "off")


class _Settings(Struct, frozen=True):
    autoCompactWindow: Raw = Raw(b"null")  # noqa: N815 - as Claude Code writes it
    autoCompactEnabled: Raw = Raw(b"null")  # noqa: N815


def compact_threshold(window: int, environ: Mapping[str, str], folder: str) -> int | None:
    """Return the tokens at which Claude Code compacts by itself; None if the user has switched that off.

    `window`: the model's window. `folder`: the project's folder, whose settings count more than the user's.
    """
    if any(environ.get(name, "").strip().lower() not in _FALSE for name in _DISABLED):
        return None
    chosen = _size(environ.get(WINDOW_VARIABLE))
    is_enabled: bool | None = None
    for settings in _settings(environ, folder):
        if chosen is None:
            given = settings.autoCompactWindow
            chosen = _size(_decode(given, float) or _decode(given, str))
        if is_enabled is None:
            is_enabled = _decode(settings.autoCompactEnabled, bool)
    if is_enabled is False:
        return None
    size = window if chosen is None else min(window, chosen)
    threshold = size - BUFFER
    percent = _number(environ.get(PERCENT_VARIABLE, ""))
    if percent is not None and 0 < percent <= 100:
        threshold = min(threshold, int((size - SUMMARY_BUFFER) * percent / 100))
    return max(1, threshold)


def _settings(environ: Mapping[str, str], folder: str) -> Iterator[_Settings]:
    """Yield the settings files that exist and can be read, those that count most first."""
    home = Path(environ.get("HOME") or environ.get("USERPROFILE") or os.sep)
    own = environ.get("CLAUDE_CONFIG_DIR")
    paths = [Path(own or home / ".claude") / "settings.json", Path(own or home) / ".claude.json"]
    if folder:
        project = Path(folder) / ".claude"
        paths = [project / "settings.local.json", project / "settings.json", *paths]
    for path in paths:
        try:
            if not path.is_file() or path.stat().st_size > MAX_SETTINGS_BYTES:
                continue
            found = _decode(path.read_bytes(), _Settings)
        except (OSError, ValueError):
            continue
        if found is not None:
            yield found


def _size(given: float | str | None) -> int | None:
    """Return a number of tokens such as `200000` or `200k`; None if it is none."""
    if isinstance(given, str):
        text = given.strip().lower().replace(",", "").replace("_", "")
        factor = {"k": 1_000, "m": 1_000_000}.get(text[-1:], 1)
        number = _number(text[:-1] if factor > 1 else text)
        given = None if number is None else number * factor
    return int(given) if given is not None and BUFFER < given < 1e9 else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if number == number else None


def _decode(data: bytes | Raw, type_: type[T]) -> T | None:
    try:
        return msgspec.json.decode(data, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
