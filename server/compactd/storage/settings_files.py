"""Settings from outside a session: environment, the workspace's file, the user's file, the client's options.

Each becomes one layer of `core.settings.merge`, with the name of where it came from. Precedence, highest
first (docs/dev/behaviour.md, "Settings"): the request, `session/configure`, `session/start`, initialization
options, environment, the workspace's `.compactd.toml`, the user's `config.toml`, the profile. A workspace's
file that the user has not trusted sets only what `core.untrusted` allows.
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
from compactd.core.budget.untrusted import harmless
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import GivenSettings, IgnoredSetting

PREFIX = "COMPACTD_"
WORKSPACE_FILE = ".compactd.toml"
USER_FILE = "config.toml"
FILE_LIMIT_BYTES = 1 << 20
WORKSPACE_LIMIT_BYTES = 16 << 10
"""A workspace's file is a stranger's; what it may set takes far less."""
KEY_DOTS = 16
"""Most of one key: the time that `tomllib` takes grows with the square of them."""
UNKNOWN_NAMED = 20
"""Names that are no settings: so many are said one by one."""
NAME_CHARS = 60
LIKENESS = 0.6
"""Of a wrong name and a setting's, as `difflib` counts it, from which on the setting is named."""
SETTING_NAMES = GivenSettings.__struct_fields__
"""Every setting, other names of one included."""

Layer = tuple[str, GivenSettings]
"""(where it came from, what it sets)."""


def is_on(value: str | None) -> bool:
    """True for a switch in the environment: any value but empty, `0`, `false` (case ignored)."""
    return value is not None and value.strip().lower() not in ("", "0", "false")


def from_environment(environ: Mapping[str, str]) -> tuple[Layer, tuple[str, ...]]:
    """The layer of `COMPACTD_…` variables, and a warning for each value that cannot be read.

    `COMPACTD_KEEP_RECENT_TOKENS=20000` sets `keep_recent_tokens`; lists are parted by commas.
    `COMPACTD_DISABLE_AUTOCOMPACT` is no setting but a switch above all layers: see `switch`.
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


def switch(environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    """The first of these switches that is on in the environment."""
    return next((name for name in names if is_on(environ.get(name))), None)


def from_file(path: Path, source: str) -> tuple[Layer | None, tuple[str, ...]]:
    """The layer of a TOML file that the user wrote: `[compaction]` and top-level `context_window`; warnings.

    A missing file is no layer. A file with a mistake sets what it can.
    """
    data, warnings = bytes_of(path, source)
    if data is None:
        return None, warnings
    given, warnings = from_bytes(data, source)
    return (None if given is None else (source, given)), warnings


class FromWorkspace(Struct, frozen=True, kw_only=True):
    """What a folder's `.compactd.toml` comes to."""

    layer: Layer | None = None
    warnings: tuple[str, ...] = ()
    """What is wrong with the file."""
    ignored: tuple[IgnoredSetting, ...] = ()
    """What it sets and is not in force, because the folder is not trusted."""
    folder: str | None = None
    """Without symbolic links; none if there is no file."""
    was_trusted: bool = False
    """The folder was trusted with other contents."""


TrustOf = Callable[[str], tuple[str | None, str | None]]
"""Of a folder without symbolic links: (the hash that the user trusted, why nothing can be trusted)."""


def from_workspace(folder: Path, trust_of: TrustOf) -> FromWorkspace:
    """What the file in `folder` comes to: all of it if the user trusted these very bytes in this very folder,
    otherwise what a stranger may set."""
    if "\0" in str(folder):
        return FromWorkspace()
    real = Path(os.path.realpath(folder))
    data, warnings = bytes_of(real / WORKSPACE_FILE, WORKSPACE_FILE, WORKSPACE_LIMIT_BYTES)
    if data is None:
        return FromWorkspace(warnings=warnings)
    given, warnings = from_bytes(data, WORKSPACE_FILE)
    if given is None:
        return FromWorkspace(warnings=warnings, folder=str(real))
    trusted, problem = trust_of(str(real))
    if trusted == digest_of(data):
        return FromWorkspace(layer=(WORKSPACE_FILE, given), warnings=warnings, folder=str(real))
    kept, ignored = harmless(given, WORKSPACE_FILE)
    return FromWorkspace(
        layer=(WORKSPACE_FILE, kept),
        warnings=warnings if problem is None else (*warnings, problem),
        ignored=ignored,
        folder=str(real),
        was_trusted=trusted is not None,
    )


def digest_of(data: bytes) -> str:
    """SHA-256 in lower-case hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def how_to_trust(found: FromWorkspace, ignored: Sequence[IgnoredSetting]) -> str:
    """One sentence for a person: what of the folder's file is ignored, why, and what to do."""
    names = ", ".join(dict.fromkeys(one.name for one in ignored))
    why = "changed since you trusted it" if found.was_trusted else "is not trusted"
    folder = shlex.quote("".join(char if char.isprintable() else "?" for char in found.folder or ""))
    them = "it" if len(ignored) == 1 else "them"
    return (
        f"{WORKSPACE_FILE} {why}, so these settings of it are ignored: {names}. "
        f"Read the file; `compactd trust {folder}` applies {them}."
    )


def bytes_of(path: Path, source: str, limit: int = FILE_LIMIT_BYTES) -> tuple[bytes | None, tuple[str, ...]]:
    """(what stands in a file of settings, what is wrong with it); nothing of both where it is not there."""
    try:
        # In a workspace that came from elsewhere it may be a link to `/dev/zero`: no size, and no end.
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a NUL is no file's
        return None, ()
    except OSError as error:
        return None, (f"{source} is ignored: {error}",)
    if len(data) > limit:
        return None, (f"{source} is ignored: it is larger than {limit} bytes",)
    return data, ()


def from_bytes(data: bytes, source: str) -> tuple[GivenSettings | None, tuple[str, ...]]:
    """(what a file of settings sets, what is wrong with it); none where it is no TOML."""
    import tomllib

    try:
        text = data.decode("utf-8")
        if _has_long_key(text):
            return None, (f"{source} is ignored: one of its keys has more than {KEY_DOTS} dots",)
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: no UTF-8, no TOML, a number of 5,000 digits
        return None, (f"{source} is ignored: {error}",)
    given = dict(table.get("compaction", {})) if isinstance(table.get("compaction"), dict) else {}
    if "context_window" in table:
        given.setdefault("context_window", table["context_window"])
    return _what_can_be_taken(given, source)


def _what_can_be_taken(given: Mapping[str, object], source: str) -> tuple[GivenSettings, tuple[str, ...]]:
    """(the settings that `given` sets, a warning for each value that is wrong and each unknown name)."""
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
        except (ValueError, OverflowError):  # an integer so long that it is neither text nor a float
            warnings.append(f"{source}: compaction.{name} is ignored: the number is too large")
            continue
        kept[name] = value
    return msgspec.convert(kept, GivenSettings), tuple(warnings)


def unknown_names(names: Sequence[str], source: str) -> tuple[str, ...]:
    """A warning for each of `names`, none of which is a setting, with the setting that was perhaps meant."""
    warnings = []
    for name in names[:UNKNOWN_NAMED]:
        near = nearest_setting(name)
        meant = f" (perhaps {near} is meant)" if near else ""
        warnings.append(f"{source}: compaction.{shown_name(name)} is no setting; it is ignored{meant}")
    if len(names) > UNKNOWN_NAMED:
        warnings.append(
            f"{source}: {len(names) - UNKNOWN_NAMED:,} more names are no settings; they are ignored"
        )
    return tuple(warnings)


def nearest_setting(name: str) -> str | None:
    """The setting whose name is most like `name`; none if it is like no setting's."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name[:NAME_CHARS].lower(), SETTING_NAMES, 1, LIKENESS)), None)


_QUOTED = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*''', re.DOTALL
)
"""TOML's strings and comments, an unfinished one to its end: no text is looked at twice."""
_DOTTED = re.compile(r"[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]*+)*+")


def _has_long_key(text: str) -> bool:
    """Whether a key of this TOML has more than `KEY_DOTS` dots. O(text)."""
    bare = _QUOTED.sub("_", text)
    return any(found.group().count(".") > KEY_DOTS for found in _DOTTED.finditer(bare))


def shown_name(name: str) -> str:
    """A name of a stranger's, for a terminal: short and printable."""
    return "".join(char if char.isprintable() else "?" for char in name[:NAME_CHARS])


def from_client(settings: Raw, source: str) -> tuple[GivenSettings | None, tuple[str, ...]]:
    """(what an editor's `{"compaction": {…}, "context_window": …}` sets, what is wrong with it).

    None if it names neither: then it is about something else, and what was set before stays. Editors send
    their whole configuration, or an empty one, at every change.
    """
    try:
        members = msgspec.json.decode(settings, type=dict[str, Raw])
        outside = [name for name in members if name in SETTING_NAMES and name != "context_window"]
        warnings = [
            f"{source}: {name} is ignored: it belongs below `compaction`" for name in outside[:UNKNOWN_NAMED]
        ]
        if "compaction" not in members and "context_window" not in members:
            return None, tuple(warnings)
        given = msgspec.json.decode(members.get("compaction", b"null"), type=dict[str, object] | None) or {}
        window = msgspec.json.decode(members.get("context_window", b"null"))
    except (msgspec.MsgspecError, UnicodeError, ValueError, RecursionError):
        return None, (f"{source} is ignored: `compaction` is an object of settings",)
    if given.get("context_window") is None:
        given["context_window"] = window
    given = {name: value for name, value in given.items() if value is not None}
    taken, wrong = _what_can_be_taken(given, source)
    return taken, (*warnings, *wrong)


def overlay(before: Raw, given: GivenSettings, *, without: Sequence[str] = ()) -> Raw:
    """The JSON of a layer without the settings in `without`, by whatever name, after `given` went over it,
    setting by setting. `before` may be null."""
    old: dict[str, object] = {} if before == Raw(b"null") else msgspec.json.decode(before)
    if without:
        lost = {ALIASES.get(name, name) for name in without}
        old = {name: value for name, value in old.items() if ALIASES.get(name, name) not in lost}
    new: dict[str, object] = msgspec.json.decode(msgspec.json.encode(given))
    return Raw(msgspec.json.encode({**old, **new}))
