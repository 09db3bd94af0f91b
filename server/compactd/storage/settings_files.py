"""Settings from outside a session: environment variables, the workspace file, the user file, the client.

Each source becomes one layer, with the name of the source. `merge` in `core/budget/settings.py` combines the
layers. Precedence, highest first (docs/dev/behaviour.md, "Settings"): the request, `session/configure`,
`session/start`, initialization options, environment, the workspace's `.compactd.toml`, the user's
`config.toml`, the profile. A workspace file that the user has not trusted may set only what
`core/budget/untrusted.py` allows.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw, Struct

from compactd.core.budget.settings import ALIASES, validate
from compactd.core.budget.untrusted import split_untrusted
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import NULL
from compactd.protocol.settings import GivenSettings, IgnoredSetting

PREFIX = "COMPACTD_"
WORKSPACE_FILE = ".compactd.toml"
USER_FILE = "config.toml"
FILE_LIMIT_BYTES = 1 << 20
WORKSPACE_LIMIT_BYTES = 16 << 10
"""The largest workspace file that is read. The file may come from a stranger, and valid settings take far
less space."""
KEY_DOTS = 16
"""The most dots in one key of a TOML file. The time of `tomllib` grows with the square of the dots, so a file
with more is ignored."""
MAX_UNKNOWN_NAMED = 20
"""The most unknown setting names that each get a warning. Further names are only counted."""
NAME_CHARS = 60
REDUCE = "reduce_"
"""The beginning of the names of the settings that the table `[reduce]` has without it."""
LIKENESS = 0.6
"""The least `difflib` similarity at which a warning suggests a setting for an unknown name."""
SETTING_NAMES = GivenSettings.__struct_fields__
"""The names of all settings, aliases included."""

Layer = tuple[str, GivenSettings]
"""(name of the source, the settings that it gives)."""


def is_on(value: str | None) -> bool:
    """Return true if the value of an environment variable means "on": any value except empty, `0` and `false`
    (in upper or lower case).
    """
    return value is not None and value.strip().lower() not in ("", "0", "false")


def from_environment(environ: Mapping[str, str]) -> tuple[Layer, tuple[str, ...]]:
    """Return the layer of `COMPACTD_…` variables, and a warning for each value that cannot be read.

    `COMPACTD_KEEP_RECENT_TOKENS=20000` sets `keep_recent_tokens`. Lists are separated by commas.
    `COMPACTD_DISABLE_AUTOCOMPACT` is not a setting but a switch, which has priority over all layers: see
    `first_switch`.
    """
    given: dict[str, object] = {}
    warnings: list[str] = []
    for field in msgspec.structs.fields(GivenSettings):
        name = PREFIX + field.encode_name.upper()
        text = environ.get(name)
        if not text:
            continue
        value: object = text
        if field.encode_name == "protected_tools":
            value = [part.strip() for part in text.split(",") if part.strip()]
        elif text.strip().lower() in ("true", "false"):
            value = text.strip().lower() == "true"
        try:
            validate(msgspec.convert({field.encode_name: value}, GivenSettings, strict=False), "")
        except (msgspec.ValidationError, InvalidParams) as error:
            warnings.append(f"{name} is ignored: {error}")
            continue
        given[field.encode_name] = value
    return ("environment", msgspec.convert(given, GivenSettings, strict=False)), tuple(warnings)


def first_switch(environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    """Return the first of the environment variables `names` that is switched on (`is_on`), or None."""
    return next((name for name in names if is_on(environ.get(name))), None)


def from_file(path: Path, source: str) -> tuple[Layer | None, tuple[str, ...]]:
    """Return (the layer of the user's TOML file at `path`, or None; warnings).

    The settings are those in the table `[compaction]`, the top-level `context_window`, and those in the table
    `[reduce]`, whose full names begin with `reduce_`. If some are wrong, the valid ones are used. A missing
    or unreadable file gives None. `source` names the file in warnings.
    """
    data, warnings = read_settings_bytes(path, source)
    if data is None:
        return None, warnings
    given, warnings = from_bytes(data, source)
    return (None if given is None else (source, given)), warnings


class FromWorkspace(Struct, frozen=True, kw_only=True):
    """The result of reading a folder's `.compactd.toml`."""

    layer: Layer | None = None
    warnings: tuple[str, ...] = ()
    """Warnings about mistakes in the file."""
    ignored: tuple[IgnoredSetting, ...] = ()
    """Settings in the file that are not applied, because the folder is not trusted."""
    folder: str | None = None
    """The folder's path without symbolic links, or None if there is no file."""
    was_trusted: bool = False
    """True if the user trusted the folder when the file had other content."""


TrustOf = Callable[[str], tuple[str | None, str | None]]
"""A function that takes a folder's path without symbolic links and returns (the hash of the file that the
user trusted, or None; why the list of trusted folders cannot be used, or None)."""


def from_workspace(folder: Path, trust_of: TrustOf) -> FromWorkspace:
    """Return the settings of the `.compactd.toml` in `folder` that apply.

    All settings apply if the user trusted the file's present bytes in this folder. Otherwise only those apply
    that an untrusted file may set.
    """
    if "\0" in str(folder):
        return FromWorkspace()
    real = Path(os.path.realpath(folder))
    data, warnings = read_workspace_bytes(real)
    if data is None:
        return FromWorkspace(warnings=warnings)
    given, warnings = from_bytes(data, WORKSPACE_FILE)
    if given is None:
        return FromWorkspace(warnings=warnings, folder=str(real))
    trusted, problem = trust_of(str(real))
    if trusted == digest_of(data):
        return FromWorkspace(layer=(WORKSPACE_FILE, given), warnings=warnings, folder=str(real))
    kept, ignored = split_untrusted(given, WORKSPACE_FILE)
    return FromWorkspace(
        layer=(WORKSPACE_FILE, kept),
        warnings=warnings if problem is None else (*warnings, problem),
        ignored=ignored,
        folder=str(real),
        was_trusted=trusted is not None,
    )


def digest_of(data: bytes) -> str:
    """Return the SHA-256 of `data` in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def how_to_trust(found: FromWorkspace, ignored: Sequence[IgnoredSetting]) -> str:
    """Return a text for the user: which settings of the folder's file `found` are `ignored`, why, and what to
    do.
    """
    names = ", ".join(dict.fromkeys(one.name for one in ignored))
    why = "changed since you trusted it" if found.was_trusted else "is not trusted"
    folder = shlex.quote("".join(char if char.isprintable() else "?" for char in found.folder or ""))
    them = "it" if len(ignored) == 1 else "them"
    return (
        f"{WORKSPACE_FILE} {why}, so these of its settings are ignored: {names}. "
        f"Read the file; `compactd trust {folder}` applies {them}."
    )


def read_settings_bytes(
    path: Path, source: str, limit: int = FILE_LIMIT_BYTES
) -> tuple[bytes | None, tuple[str, ...]]:
    """Return (the bytes of a settings file, warnings). If the file does not exist: (None, no warnings). If it
    cannot be read or is larger than `limit` bytes: (None, a warning).
    """
    try:
        # In a stranger's workspace it may be a link to `/dev/zero`, which has no end. So limit the read.
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a path with a NUL byte
        return None, ()
    except OSError as error:
        return None, (f"{source} is ignored: {error}",)
    if len(data) > limit:
        return None, (f"{source} is ignored: it is larger than {limit} bytes",)
    return data, ()


def read_workspace_bytes(folder: Path) -> tuple[bytes | None, tuple[str, ...]]:
    """Return the bytes of the `.compactd.toml` in `folder`, and warnings, as `read_settings_bytes` does."""
    return read_settings_bytes(folder / WORKSPACE_FILE, WORKSPACE_FILE, WORKSPACE_LIMIT_BYTES)


def from_bytes(data: bytes, source: str) -> tuple[GivenSettings | None, tuple[str, ...]]:
    """Return (the valid settings in the content of a settings file, warnings). The settings are None if the
    content is not valid TOML.
    """
    import tomllib

    try:
        text = data.decode("utf-8")
        if _has_long_key(text):
            return None, (f"{source} is ignored: one of its keys has more than {KEY_DOTS} dots",)
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: not UTF-8, not TOML, a number of 5,000 digits
        return None, (f"{source} is ignored: {error}",)
    given = dict(table.get("compaction", {})) if isinstance(table.get("compaction"), dict) else {}
    if "context_window" in table:
        given.setdefault("context_window", table["context_window"])
    if isinstance(reduce := table.get("reduce"), dict):
        given = {**_with_prefix(reduce), **given}
    return _valid_settings(given, source)


def _with_prefix(reduce: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a table or object `reduce` under their full names."""
    return {f"{REDUCE}{name}": value for name, value in reduce.items()}


def _valid_settings(given: Mapping[str, object], source: str) -> tuple[GivenSettings, tuple[str, ...]]:
    """Return (the valid settings in `given`, a warning for each wrong value and unknown name)."""
    kept: dict[str, object] = {}
    warnings = list(unknown_names([name for name in given if name not in SETTING_NAMES], source))
    for name, value in given.items():
        if name not in SETTING_NAMES:
            continue
        try:
            validate(msgspec.convert({name: value}, GivenSettings), "")
        except (msgspec.ValidationError, InvalidParams) as error:
            warnings.append(f"{source}: compaction.{name} is ignored: {error}")
            continue
        except (ValueError, OverflowError):  # an integer too long for text or float
            warnings.append(f"{source}: compaction.{name} is ignored: the number is too large")
            continue
        kept[name] = value
    return msgspec.convert(kept, GivenSettings), tuple(warnings)


def unknown_names(names: Sequence[str], source: str) -> tuple[str, ...]:
    """Return a warning for each of `names`, which are not names of settings. A warning names a similar
    setting if there is one.
    """
    warnings = []
    for name in names[:MAX_UNKNOWN_NAMED]:
        near = nearest_setting(name)
        meant = f" (perhaps {near} is meant)" if near else ""
        warnings.append(f"{source}: compaction.{printable_name(name)} is not a setting; it is ignored{meant}")
    if len(names) > MAX_UNKNOWN_NAMED:
        warnings.append(
            f"{source}: {len(names) - MAX_UNKNOWN_NAMED:,} more names are not settings; they are ignored"
        )
    return tuple(warnings)


def nearest_setting(name: str) -> str | None:
    """Return the setting whose name is most similar to `name`, or None if none is similar."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name[:NAME_CHARS].lower(), SETTING_NAMES, 1, LIKENESS)), None)


_QUOTED = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*''', re.DOTALL
)
"""The pattern of TOML strings and comments. It matches an unfinished string to the end of the text, so that
no text is scanned twice."""
_DOTTED = re.compile(r"[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]*+)*+")


def _has_long_key(text: str) -> bool:
    """Return true if a key in this TOML has more than `KEY_DOTS` dots. O(text)."""
    bare = _QUOTED.sub("_", text)
    return any(found.group().count(".") > KEY_DOTS for found in _DOTTED.finditer(bare))


def printable_name(name: str) -> str:
    """Return a name from an untrusted source, shortened and with only printable characters, so that a
    terminal can show it safely.
    """
    return "".join(char if char.isprintable() else "?" for char in name[:NAME_CHARS])


def from_client(settings: Raw, source: str) -> tuple[GivenSettings | None, tuple[str, ...]]:
    """Return (the settings in `settings`, an object with `compaction`, `context_window` and `reduce`;
    warnings).

    The settings are None if the object has none of these keys. Then earlier settings must stay: editors
    send their whole configuration, or an empty object, whenever anything in it changes.
    """
    try:
        members = msgspec.json.decode(settings, type=dict[str, Raw])
        outside = [name for name in members if name in SETTING_NAMES and name != "context_window"]
        warnings = [
            f"{source}: {name} is ignored: give it inside the object `compaction`"
            for name in outside[:MAX_UNKNOWN_NAMED]
        ]
        if members.keys().isdisjoint(("compaction", "context_window", "reduce")):
            return None, tuple(warnings)
        given = msgspec.json.decode(members.get("compaction", b"null"), type=dict[str, object] | None) or {}
        window = msgspec.json.decode(members.get("context_window", b"null"))
        reduce = msgspec.json.decode(members.get("reduce", b"null"), type=dict[str, object] | None)
    except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
        return None, (f"{source} is ignored: `compaction` must be an object of settings",)
    given = {**_with_prefix(reduce or {}), **given}
    if given.get("context_window") is None:
        given["context_window"] = window
    given = {name: value for name, value in given.items() if value is not None}
    taken, wrong = _valid_settings(given, source)
    return taken, (*warnings, *wrong)


def overlay(before: Raw, given: GivenSettings, *, without: Sequence[str] = ()) -> Raw:
    """Return the JSON object `before` in which the settings of `given` replace those of the same name.

    First, settings that `without` names (by any alias) are removed from `before`, which may be null.
    """
    old: dict[str, object] = {} if before == NULL else msgspec.json.decode(before)
    if without:
        lost = {ALIASES.get(name, name) for name in without}
        old = {name: value for name, value in old.items() if ALIASES.get(name, name) not in lost}
    new: dict[str, object] = msgspec.json.decode(msgspec.json.encode(given))
    return Raw(msgspec.json.encode({**old, **new}))
