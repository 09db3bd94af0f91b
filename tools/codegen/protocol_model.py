"""A description of the protocol: calls in both directions, events, errors and their types.

It is computed from the table of methods and the message classes. The other modules of this package write it
as documentation, schemas and types.
"""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator, Sequence
from functools import cache
from types import ModuleType

import msgspec
from msgspec import Struct

from compactd.agent import tool_calls
from compactd.compaction import client_hook
from compactd.protocol import error_data, errors, messages, settings, wire, work
from compactd.protocol.error_data import DATA
from compactd.protocol.errors import CompactdError
from compactd.protocol.messages import Event
from compactd.protocol.methods import METHODS
from tools.codegen.shapes import (
    ListOf,
    NamedType,
    OneOf,
    Plain,
    TypeShape,
    annotation_text,
    shape_of_annotation,
    structs_in,
)

Docs = dict[tuple[str, str], str]
"""(class, field) -> the field's documentation."""

MODULES: tuple[ModuleType, ...] = (wire, work, error_data, messages, settings, client_hook, tool_calls)


class DescribedRequest(Struct, frozen=True, kw_only=True):
    """A request, in either direction."""

    name: str
    params: type[Struct]
    result: type[Struct] | None
    """The type of the result; None if the answer is null."""
    errors: tuple[type[CompactdError], ...] = ()
    doc: str


class DescribedField(Struct, frozen=True, kw_only=True):
    """A field of a type of the protocol."""

    name: str
    shape: TypeShape
    is_required: bool
    """In params: true if the field must be given. In what the daemon sends: true if the field is always
    present.
    """
    doc: str


class DescribedType(Struct, frozen=True, kw_only=True):
    """A type of the protocol and its fields."""

    name: str
    doc: str
    fields: tuple[DescribedField, ...]
    tag: str | None = None
    """The value of the field `type` of an event or a block; None for other types."""
    exclusive: tuple[tuple[str, ...], ...] = ()
    """Groups of fields of which at most one group may be given; see `EXCLUSIVE`."""


REQUESTS: tuple[DescribedRequest, ...] = tuple(
    DescribedRequest(
        name=method.name,
        params=method.params,
        result=method.result if isinstance(method.result, type) else None,
        errors=method.errors,
        doc=method.doc,
    )
    for method in METHODS.values()
)
"""Requests from the client to the daemon."""

CLIENT_REQUESTS: tuple[DescribedRequest, ...] = (
    DescribedRequest(
        name="session/compacting",
        params=client_hook.HookParams,
        result=client_hook.HookAnswer,
        doc="A compaction is about to start. The client may add to the prompt, replace it, or refuse the "
        "compaction. Sent to clients that announced `compaction_hook`. If the client does not answer in "
        "time, the compaction continues.",
    ),
    DescribedRequest(
        name="tool/execute",
        params=tool_calls.ToolParams,
        result=tool_calls.ToolAnswer,
        doc="The model called a tool during `agent/prompt`. The client runs it.",
    ),
)
"""Requests from the daemon to the client."""

EVENTS: tuple[type[Struct], ...] = typing.get_args(Event)
"""The types of events: params of the notification `agent/event`, without the fields that every event has."""

EXCLUSIVE: dict[type[Struct], tuple[tuple[str, ...], ...]] = {
    wire.CompactParams: (("keep_recent",), ("keep_messages", "preserve_count"), ("target_tokens",)),
    wire.ExpandParams: (("compaction_id",), ("entry_ids",)),
    wire.ImportParams: (("path",), ("content",)),
    wire.PromptParams: (("text",), ("content",)),
    wire.CountParams: (("text",), ("messages",)),
}
"""Params type -> groups of its fields. Fields of at most one group may be given. The fields within a group
are synonyms.
"""

TOKEN = DescribedField(
    name="workDoneToken",
    shape=OneOf((Plain("string"), Plain("integer"))),
    is_required=False,
    doc="LSP's progress token, chosen by the client. `$/progress` reports on this request with it until "
    "the request is answered.",
)
"""The additional field in the params of requests that can take long."""

LONG = (wire.CompactParams, wire.ErrorParams, wire.ImportParams, wire.ModelSetParams, wire.SessionParams)
"""Types of params for which `TOKEN` is documented. The params of other requests may contain it, too."""

BLOCKS = (
    messages.Text,
    messages.Thinking,
    messages.Image,
    messages.Document,
    messages.ToolCall,
    messages.ToolResult,
    messages.Opaque,
    messages.Unknown,
)
"""The blocks that a message's content may contain."""

EVENT_FIELDS = (
    DescribedField(
        name="session_id", shape=Plain("string"), is_required=True, doc="The session that the event is about."
    ),
    DescribedField(
        name="seq",
        shape=Plain("integer"),
        is_required=True,
        doc="The number of the event; it rises by one with each event of a session.",
    ),
    DescribedField(
        name="client",
        shape=Plain("string"),
        is_required=False,
        doc="The name of the client that caused the event, as given in `client.name`. Left out if it is not "
        "known, and if nothing that a client did caused it.",
    ),
)
"""The fields that every event has."""


def common_fields(kind: DescribedType) -> tuple[DescribedField, ...]:
    """Return the fields that `kind` has like every event: those that it does not describe itself."""
    own = {field.name for field in kind.fields}
    return tuple(field for field in EVENT_FIELDS if field.name not in own)


def client_errors() -> Sequence[type[CompactdError]]:
    """Return every error that a client can receive, JSON-RPC's own errors first."""
    found = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, CompactdError)]
    return sorted(found, key=lambda e: (e.code > 0, abs(e.code)))


def class_doc(kind: type) -> str:
    """Return the docstring of the class `kind` in one line."""
    return " ".join((inspect.getdoc(kind) or "").split())


def describe_type(kind: type[Struct], docs: Docs, *, is_sent: bool) -> DescribedType:
    """Return the description of the type `kind` and its fields. `is_sent`: the daemon sends values of the
    type, so fields with a default are always present.
    """
    always = is_sent and not kind.__struct_config__.omit_defaults
    tag = kind.__struct_config__.tag
    return DescribedType(
        name=kind.__name__,
        doc=class_doc(kind),
        fields=tuple(
            DescribedField(
                name=field.encode_name,
                shape=_shape(kind, field.name, field.type),
                is_required=field.required or (always and field.default is not msgspec.UNSET),
                doc=docs.get((kind.__name__, field.name)) or annotation_text(field.type),
            )
            for field in msgspec.structs.fields(kind)
            if not (kind is messages.Unknown and field.name == "raw")
        )
        + ((TOKEN,) if kind in LONG else ()),
        tag=tag if isinstance(tag, str) else None,
        exclusive=EXCLUSIVE.get(kind, ()),
    )


@cache
def all_types() -> tuple[DescribedType, ...]:
    """Return the description of each type of the protocol once: params and the types in them first, then what
    the daemon sends.
    """
    docs = field_docs()
    asked = [
        *(call.params for call in REQUESTS),
        *(call.result for call in CLIENT_REQUESTS),
        messages.Message,
        *BLOCKS,
    ]
    sent = [*(call.result for call in REQUESTS), *(call.params for call in CLIENT_REQUESTS)]
    given: dict[type[Struct], None] = {}
    for kind in asked:
        _add_reachable(kind, given)
    answered: dict[type[Struct], None] = {}
    for kind in [*sent, *EVENTS, *DATA.values()]:
        _add_reachable(kind, answered)
    return (
        *(describe_type(kind, docs, is_sent=False) for kind in given),
        *(describe_type(kind, docs, is_sent=True) for kind in answered if kind not in given),
    )


@cache
def field_docs() -> Docs:
    """Return the documentation of all fields: the strings below them."""
    own = {name: doc for module in MODULES for name, doc in _field_docs(module)}
    for kind in DATA.values():
        for base in kind.__mro__[1:]:
            own |= {(kind.__name__, name): doc for (of, name), doc in own.items() if of == base.__name__}
    return own


def _add_reachable(kind: type[Struct] | None, seen: dict[type[Struct], None]) -> None:
    """Add `kind` and the structs in its fields to `seen`, outer ones first."""
    if kind is None or kind in seen:
        return
    seen[kind] = None
    for field in msgspec.structs.fields(kind):
        for inner in structs_in(_shape(kind, field.name, field.type)):
            _add_reachable(inner, seen)


def _shape(kind: type[Struct], name: str, annotation: object) -> TypeShape:
    """Return the shape of a field on the wire: the type of its JSON value. The content of a message or tool
    result may be a text instead of a list of blocks.
    """
    if (kind, name) in ((messages.Message, "content"), (messages.ToolResult, "content")):
        return OneOf((Plain("string"), ListOf(OneOf(tuple(NamedType(block) for block in BLOCKS)))))
    return shape_of_annotation(annotation)


def _field_docs(module: ModuleType) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield ((class, field), the string below the field) for every class of a module."""
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, below in zip(node.body, node.body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                match below:
                    case ast.Expr(value=ast.Constant(value=str() as text)):
                        yield (node.name, field.target.id), " ".join(text.split())
