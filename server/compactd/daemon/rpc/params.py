"""Decode the params of a method into its struct, or report the path of the field that is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.empty_list import is_empty_list
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import NULL
from compactd.protocol.settings import GivenSettings

_log = logging.getLogger("compactd.rpc")

_EMPTY = Raw(b"{}")
_UNKNOWN_FIELD = "Object contains unknown field `"
_MISSING_FIELD = "Object missing required field `"
_WARNED_FIELDS = 64  # the most unknown fields that are logged per method: a client cannot fill the log
_TOKENS = {"work_done_token": "workDoneToken", "partial_result_token": "partialResultToken"}
"""By field name, the JSON key of each field that LSP allows in the params of any request."""
_SETTINGS = frozenset(GivenSettings.__struct_encode_fields__)


class ParamsReader:
    """The decoder for the params of one method.

    It decodes into two subclasses of the method's struct, which also accept LSP's tokens. The first refuses
    unknown fields, which costs nothing if there are none. The second ignores them, and is used only if the
    first refuses.
    """

    def __init__(self, method: str, params: type[Struct]) -> None:
        self._method = method
        self._params = params
        self._known = {*params.__struct_encode_fields__, *_TOKENS.values()}
        self._warned: set[str] = set()
        self._settings = [
            field.encode_name
            for field in msgspec.structs.fields(params)
            if GivenSettings in get_args(field.type)
        ]
        self.unknown: tuple[str, ...] = ()
        """The unknown fields in the params that were read last. The name of an unknown setting begins with
        `compaction.`."""
        self._decode = msgspec.json.Decoder(_twin(params, strict=True)).decode
        self._lax: Callable[[Raw | bytes], Struct] | None = None

    def read(self, raw: Raw | UnsetType) -> Struct:
        """Return the params. Missing or null params are `{}`. Unknown fields are logged once and ignored.

        Null for an optional field counts as missing, and `[]` counts as `{}` for an object without required
        fields. Raises `InvalidParams` with the path of the wrong field. Valid params are decoded once, others
        up to four times, and params with settings once more.
        """
        self.unknown = ()
        if raw is UNSET or raw == NULL:
            raw = _EMPTY
        try:
            params = self._decode(raw)
        except msgspec.ValidationError as error:
            params = self._read_lax(raw, error)
        if self._settings and raw != _EMPTY:
            self._check_settings(raw, params)
        return params

    def _read_lax(self, raw: Raw, error: msgspec.ValidationError) -> Struct:
        try:
            if str(error).startswith(_UNKNOWN_FIELD):
                self._warn(raw)
                try:
                    return self._decode_lax(raw)
                except msgspec.ValidationError as other:
                    error = other
            if b"null" in bytes(raw) or b"[" in bytes(raw):
                # Imported only here: msgspec.inspect is slow to import, and most clients do not need it.
                from compactd.daemon.rpc.nulls import drop_nulls

                try:
                    return self._decode_lax(drop_nulls(raw, self._params))
                except msgspec.ValidationError as other:
                    error = other
            raise invalid_params(error) from None
        finally:
            # Break the cycle between traceback and frame, which would keep the request's bytes alive.
            del error

    def _decode_lax(self, raw: Raw | bytes) -> Struct:
        if self._lax is None:
            self._lax = msgspec.json.Decoder(_twin(self._params, strict=False)).decode
        return self._lax(raw)

    def _warn(self, raw: Raw) -> None:
        unknown = msgspec.json.decode(raw, type=dict[str, Raw]).keys() - self._known
        self.unknown = tuple(sorted(unknown)[:_WARNED_FIELDS])
        for name in sorted(unknown - self._warned)[: _WARNED_FIELDS - len(self._warned)]:
            self._warned.add(name)
            _log.warning("%s: the field %r is not known and was ignored", self._method, name[:100])

    def _check_settings(self, raw: Raw, params: Struct) -> None:
        given = [name for name in self._settings if getattr(params, name, None) is not None]
        if not given:
            return
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        for name in given:
            if not is_empty_list(members[name]):
                unknown = msgspec.json.decode(members[name], type=dict[str, Raw]).keys() - _SETTINGS
                self.unknown += tuple(f"{name}.{one}" for one in sorted(unknown)[:_WARNED_FIELDS])


def token_of(params: Struct) -> bytes | None:
    """Return the `workDoneToken` in the params as JSON text, or None."""
    token: Raw | UnsetType = getattr(params, "work_done_token", UNSET)
    return bytes(token) if token is not UNSET and is_token(token) else None


def is_token(raw: Raw) -> bool:
    """Return true if a JSON value can be a progress token: a string or an integer."""
    return bytes(raw)[0] in b'"-0123456789'


def _twin(params: type[Struct], *, strict: bool) -> type[Struct]:
    return msgspec.defstruct(
        f"{params.__name__}Call",
        [(name, Raw | UnsetType, msgspec.field(name=wire, default=UNSET)) for name, wire in _TOKENS.items()],
        bases=(params,),
        forbid_unknown_fields=strict,
        frozen=True,
        kw_only=True,
    )


PATTERN = "matching regex"
"""Part of msgspec's message for text that does not match a pattern. Only session ids have a pattern."""


def invalid_params(error: msgspec.ValidationError) -> InvalidParams:
    """Return msgspec's error as `InvalidParams`. The path in msgspec's message (`Expected … - at
    `$.messages[0].role``) becomes the error's `path`.
    """
    message, _, place = str(error).partition(" - at `")
    if PATTERN in message:
        message = "Expected 1 to 256 characters, none of them a control character"
    path = place.removesuffix("`").rpartition("`")[2] or "$"
    if message.startswith(_MISSING_FIELD):
        path = f"{path}.{message[len(_MISSING_FIELD) : -1]}"
    return InvalidParams(message, path)
