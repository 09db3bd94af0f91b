"""Settings from outside a session: environment, the workspace's file, the user's file, the client's options.

Each becomes one layer of `core.settings.merge`, with the name of where it came from. Precedence, highest
first (behaviour.md, Settings): the request, `session/configure`, `session/start`, initialization options,
environment, the workspace's `.compactd.toml`, the user's `config.toml`, the profile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Raw

from compactd.core.settings import GivenSettings, validate
from compactd.errors import InvalidParams

PREFIX = "COMPACTD_"
WORKSPACE_FILE = ".compactd.toml"
NOT_OF_WORKSPACE = ("model",)
"""What a workspace's file may not set: a folder that was downloaded does not choose who reads the talk."""
USER_FILE = "config.toml"
FILE_LIMIT_BYTES = 1 << 20

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
    """The layer of a TOML file: its `[compaction]` table and top-level `context_window`, with warnings.

    A missing file is no layer. A file with a mistake sets what it can.
    """
    try:
        # In a workspace that came from elsewhere it may be a link to `/dev/zero`: no size, and no end.
        with path.open("rb") as file:
            data = file.read(FILE_LIMIT_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a name with a NUL is no file's
        return None, ()
    except OSError as error:
        return None, (f"{source} is ignored: {error}",)
    if len(data) > FILE_LIMIT_BYTES:
        return None, (f"{source} is ignored: it is larger than {FILE_LIMIT_BYTES} bytes",)
    import tomllib

    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        return None, (f"{source} is ignored: {error}",)
    given = dict(table.get("compaction", {})) if isinstance(table.get("compaction"), dict) else {}
    if "context_window" in table:
        given.setdefault("context_window", table["context_window"])
    known = {field.encode_name for field in msgspec.structs.fields(GivenSettings)}
    kept: dict[str, object] = {}
    warnings: list[str] = []
    for name, value in given.items():
        if name not in known:
            warnings.append(f"{source}: compaction.{name} is no setting; it is ignored")
            continue
        if source == WORKSPACE_FILE and name in NOT_OF_WORKSPACE:
            warnings.append(f"{source}: compaction.{name} is ignored: only the user names a summariser")
            continue
        try:
            validate(msgspec.convert({name: value}, GivenSettings), "")
        except (msgspec.ValidationError, InvalidParams) as error:
            warnings.append(f"{source}: compaction.{name} is ignored: {error}")
            continue
        kept[name] = value
    return (source, msgspec.convert(kept, GivenSettings)), tuple(warnings)


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
