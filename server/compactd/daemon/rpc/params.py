"""Params of our methods: raw JSON to the method's struct, or the path of what is wrong with it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import get_args

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from compactd.daemon.rpc.empty_list import is_empty_list
from compactd.protocol.errors import InvalidParams
from compactd.protocol.settings import GivenSettings

_log = logging.getLogger("compactd.rpc")

_EMPTY = Raw(b"{}")
_NULL = Raw(b"null")
_UNKNOWN_FIELD = "Object contains unknown field `"
_MISSING_FIELD = "Object missing required field `"
_WARNED_FIELDS = 64  # of one method: a client that makes names up fills neither memory nor log
_TOKENS = {"work_done_token": "workDoneToken", "partial_result_token": "partialResultToken"}
"""What LSP allows in the params of any request."""
_SETTINGS = frozenset(GivenSettings.__struct_encode_fields__)


class ParamsReader:
    """Reads the params of one method.

    It decodes to subclasses of the method's struct: one that takes LSP's tokens too and refuses fields
    that it does not know, which costs nothing where there are none, and one that ignores them.
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
        """Fields of the params that were read last which nobody knows; those of settings with `compaction.`
        before them."""
        self.is_strict = not self._settings
        """Whatever was read so far fitted `strict`, and there is nothing in it to look at once more."""
        self.strict = _twin(params, strict=True)
        """What params are decoded to, if nothing about them is odd."""
        self._decode = msgspec.json.Decoder(self.strict).decode
        self._lax: Callable[[Raw | bytes], Struct] | None = None

    def read(self, raw: Raw | UnsetType) -> Struct:
        """The params. Absent or null ones are `{}`; fields we do not know are logged once and ignored.

        Null for a field that may be left out is the same as leaving it out, and an empty list for an object
        without required fields is an empty object. Raises `InvalidParams` with the path of the field that is
        wrong. One pass where all is well, up to four where not; one more for params that hold settings.
        """
        self.unknown = ()
        if raw is UNSET or raw == _NULL:
            raw = _EMPTY
        try:
            params = self._decode(raw)
        except msgspec.ValidationError as error:
            params = self._read_lax(raw, error)
        if self._settings and raw != _EMPTY:
            self._look_into_settings(raw, params)
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
                # Only now, for msgspec.inspect is slow to import, and who leaves fields out needs none.
                from compactd.daemon.rpc.nulls import as_meant

                try:
                    return self._decode_lax(as_meant(raw, self._params))
                except msgspec.ValidationError as other:
                    error = other
            raise invalid_params(error) from None
        finally:
            # Its traceback holds this frame, which were to hold it and the request's bytes to a collection.
            del error

    def _decode_lax(self, raw: Raw | bytes) -> Struct:
        if self._lax is None:
            self._lax = msgspec.json.Decoder(_twin(self._params, strict=False)).decode
        params = self._lax(raw)
        self.is_strict = False
        return params

    def _warn(self, raw: Raw) -> None:
        unknown = msgspec.json.decode(raw, type=dict[str, Raw]).keys() - self._known
        self.unknown = tuple(sorted(unknown)[:_WARNED_FIELDS])
        for name in sorted(unknown - self._warned)[: _WARNED_FIELDS - len(self._warned)]:
            self._warned.add(name)
            _log.warning("%s: the field %r is not known and was ignored", self._method, name[:100])

    def _look_into_settings(self, raw: Raw, params: Struct) -> None:
        given = [name for name in self._settings if getattr(params, name, None) is not None]
        if not given:
            return
        members = msgspec.json.decode(raw, type=dict[str, Raw])
        for name in given:
            if not is_empty_list(members[name]):
                unknown = msgspec.json.decode(members[name], type=dict[str, Raw]).keys() - _SETTINGS
                self.unknown += tuple(f"{name}.{one}" for one in sorted(unknown)[:_WARNED_FIELDS])


def token_of(params: Struct) -> bytes | None:
    """The `workDoneToken` that came with params, as JSON text; None where there is none."""
    token: Raw | UnsetType = getattr(params, "work_done_token", UNSET)
    return bytes(token) if token is not UNSET and is_token(token) else None


def is_token(raw: Raw) -> bool:
    """Whether a JSON value may name a progress: a string or a whole number."""
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
"""How msgspec words a text that does not match; session ids are the only ones with a pattern."""


def invalid_params(error: msgspec.ValidationError) -> InvalidParams:
    """msgspec's own sentence (`Expected … - at `$.messages[0].role``), with its path taken out."""
    message, _, place = str(error).partition(" - at `")
    if PATTERN in message:
        message = "Expected 1 to 256 characters, none of them a control character"
    path = place.removesuffix("`").rpartition("`")[2] or "$"
    if message.startswith(_MISSING_FIELD):
        path = f"{path}.{message[len(_MISSING_FIELD) : -1]}"
    return InvalidParams(message, path)
