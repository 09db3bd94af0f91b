"""Settings from outside a session: environment, the workspace's file, the user's file, the client's options.

Each becomes one layer of `core.settings.merge`, with the name of where it came from. Precedence, highest
first (behaviour.md, Settings): the request, `session/configure`, `session/start`, initialization options,
environment, the workspace's `.compactd.toml`, the user's `config.toml`, the profile. A workspace's file that
the user has not trusted sets only what `core.untrusted` allows.
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

from compactd.core.settings import GivenSettings, IgnoredSetting, validate
from compactd.core.untrusted import harmless
from compactd.errors import InvalidParams

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
    known = {field.encode_name for field in msgspec.structs.fields(GivenSettings)}
    kept: dict[str, object] = {}
    warnings: list[str] = []
    unknown = [name for name in given if name not in known]
    for name in unknown[:UNKNOWN_NAMED]:
        warnings.append(f"{source}: compaction.{_shown(name)} is no setting; it is ignored")
    if len(unknown) > UNKNOWN_NAMED:
        warnings.append(
            f"{source}: {len(unknown) - UNKNOWN_NAMED:,} more names are no settings; they are ignored"
        )
    for name, value in given.items():
        if name not in known:
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


_QUOTED = re.compile(
    r'''"""(?:\\.|[^\\])*?(?:"""|\Z)|'{3}.*?(?:'{3}|\Z)|"(?:\\.|[^"\\\n])*"?|'[^'\n]*'?|\#[^\n]*''', re.DOTALL
)
"""TOML's strings and comments, an unfinished one to its end: no text is looked at twice."""
_DOTTED = re.compile(r"[\w-]++(?:[ \t]*+\.[ \t]*+[\w-]*+)*+")


def _has_long_key(text: str) -> bool:
    """Whether a key of this TOML has more than `KEY_DOTS` dots. O(text)."""
    bare = _QUOTED.sub("_", text)
    return any(found.group().count(".") > KEY_DOTS for found in _DOTTED.finditer(bare))


def _shown(name: str) -> str:
    """A name of a stranger's, for a terminal: short and printable."""
    return "".join(char if char.isprintable() else "?" for char in name[:NAME_CHARS])


def from_client(settings: Raw) -> Layer:
    """The layer of `initializationOptions` or `didChangeConfiguration`.

    Accepts `{"compaction": {…}, "context_window": …}`. Raises `InvalidParams` with the path of what is wrong.
    """
    try:
        options = msgspec.json.decode(settings, type=_ClientOptions)
    except msgspec.ValidationError as error:
        raise InvalidParams(f"the client's settings are wrong: {error}") from None
    given = options.compaction or GivenSettings()
    if given.context_window is None and options.context_window is not None:
        given = msgspec.structs.replace(given, context_window=options.context_window)
    return "initializationOptions", validate(given)


class _ClientOptions(msgspec.Struct, frozen=True, kw_only=True):
    compaction: GivenSettings | None = None
    context_window: int | None = None


def overlay(before: Raw, given: GivenSettings) -> Raw:
    """The JSON of a layer after `given` went over it, setting by setting. `before` may be null."""
    old: dict[str, object] = {} if before == Raw(b"null") else msgspec.json.decode(before)
    new: dict[str, object] = msgspec.json.decode(msgspec.json.encode(given))
    return Raw(msgspec.json.encode({**old, **new}))
