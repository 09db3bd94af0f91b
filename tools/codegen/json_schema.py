"""Generate the protocol as JSON Schema 2020-12, and as OpenRPC with the same schemas.

Sources: json-schema.org/draft/2020-12, spec.open-rpc.org (1.3.2).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping

from compactd import PROTOCOL_VERSION
from compactd.protocol.error_data import DATA
from compactd.protocol.errors import CompactdError
from tools.codegen.examples import Tree, examples
from tools.codegen.protocol_model import (
    CLIENT_REQUESTS,
    EVENT_FIELDS,
    EVENTS,
    REQUESTS,
    DescribedField,
    DescribedRequest,
    DescribedType,
    all_types,
    class_doc,
    client_errors,
    common_fields,
)
from tools.codegen.shapes import (
    AnyJson,
    ListOf,
    MapOf,
    NamedType,
    OneOf,
    Plain,
    StringChoice,
    TypeShape,
)

DEFS = "#/$defs/"
COMPONENTS = "#/components/schemas/"
ERRORS = "#/components/errors/"


def json_schema() -> str:
    """Return the JSON Schema. `properties` contains every call and event, `$defs` every type."""
    document: dict[str, Tree] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "compactd",
        "description": f"The protocol of compactd, version {PROTOCOL_VERSION}.",
        "type": "object",
        "properties": {
            "requests": _calls(REQUESTS, "What a client may ask the daemon."),
            "client_requests": _calls(CLIENT_REQUESTS, "What the daemon may ask the client."),
            "event": {
                "description": "Params of the notification `agent/event`.",
                "anyOf": [{"$ref": DEFS + event.__name__} for event in EVENTS],
            },
            "error": {
                "description": "The `error` of an answer.",
                "anyOf": [_error(error) for error in client_errors()],
            },
        },
        "$defs": _definitions(DEFS),
    }
    return _text(document)


def open_rpc() -> str:
    """Return the OpenRPC document. The field `x-direction` of a method says whether the client or the daemon
    sends it.
    """
    document: dict[str, Tree] = {
        "openrpc": "1.3.2",
        "info": {
            "title": "compactd",
            "version": PROTOCOL_VERSION,
            "description": "Keeps conversations with language models within the model's context window.",
            "license": {"name": "MIT"},
        },
        "methods": [
            *(_method(call, "client-to-daemon") for call in REQUESTS),
            *(_method(call, "daemon-to-client") for call in CLIENT_REQUESTS),
            {
                "name": "agent/event",
                "description": "A notification, sent when an event happens.",
                "paramStructure": "by-name",
                "params": [
                    *(
                        _required_param(field.name, field.doc, _schema(field.shape, COMPONENTS))
                        for field in EVENT_FIELDS
                        if field.is_required
                    ),
                    _required_param("type", "The type of the event.", {"type": "string", "enum": _tags()}),
                ],
                "x-direction": "daemon-to-client",
                "x-events": [{"$ref": COMPONENTS + event.__name__} for event in EVENTS],
            },
        ],
        "components": {
            "schemas": _definitions(COMPONENTS),
            "errors": {error.__name__: _open_rpc_error(error) for error in client_errors()},
        },
    }
    return _text(document)


def _text(document: Mapping[str, Tree]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _required_param(name: str, doc: str, schema: dict[str, Tree]) -> Tree:
    return {"name": name, "required": True, "description": doc, "schema": schema}


def _tags() -> list[Tree]:
    return [str(event.__struct_config__.tag) for event in EVENTS]


def _calls(calls: Iterable[DescribedRequest], doc: str) -> Tree:
    rows: dict[str, Tree] = {}
    for call in calls:
        result: Tree = {"type": "null"} if call.result is None else {"$ref": DEFS + call.result.__name__}
        rows[call.name] = {
            "description": call.doc,
            "type": "object",
            "properties": {"params": {"$ref": DEFS + call.params.__name__}, "result": result},
            "required": ["params", "result"],
        }
    return {"description": doc, "type": "object", "properties": rows}


def _error(error: type[CompactdError]) -> Tree:
    properties: dict[str, Tree] = {"code": {"const": error.code}, "message": {"type": "string"}}
    required: list[Tree] = ["code", "message"]
    if error in DATA:
        properties["data"] = {"$ref": DEFS + DATA[error].__name__}
        required.append("data")
    return {
        "title": error.__name__,
        "description": class_doc(error),
        "type": "object",
        "properties": properties,
        "required": required,
    }


def _open_rpc_error(error: type[CompactdError]) -> Tree:
    made: dict[str, Tree] = {"code": error.code, "message": error.__name__}
    if error in DATA:
        made["data"] = {"$ref": COMPONENTS + DATA[error].__name__}
    return made


def _definitions(prefix: str) -> dict[str, Tree]:
    events = {event.__name__ for event in EVENTS}
    return {kind.name: _object(kind, prefix, kind.name in events) for kind in all_types()}


def _object(kind: DescribedType, prefix: str, is_event: bool) -> Tree:
    properties: dict[str, Tree] = {}
    required: list[Tree] = []
    if kind.tag is not None:
        properties["type"] = {"const": kind.tag}
        required.append("type")
    fields: tuple[DescribedField, ...] = (*common_fields(kind), *kind.fields) if is_event else kind.fields
    for field in fields:
        schema = _schema(field.shape, prefix)
        properties[field.name] = {"description": field.doc, **schema} if field.doc else schema
        if field.is_required:
            required.append(field.name)
    made: dict[str, Tree] = {"description": kind.doc} if kind.doc else {}
    made |= {"type": "object", "properties": properties}
    if required:
        made["required"] = required
    if kind.exclusive:
        made["not"] = {"anyOf": [_with_both(*pair) for pair in _pairs(kind.exclusive)]}
    return made


def _pairs(groups: Iterable[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    """Yield each pair of names from different groups once."""
    for one, other in itertools.combinations(groups, 2):
        yield from itertools.product(one, other)


def _with_both(one: str, other: str) -> Tree:
    """Return a schema for objects that contain both fields with a value other than null."""
    given: Tree = {"not": {"type": "null"}}
    return {"required": [one, other], "properties": {one: given, other: given}}


def _schema(shape: TypeShape, prefix: str) -> dict[str, Tree]:
    match shape:
        case AnyJson():
            return {}
        case Plain(name, limits):
            return {"type": name, **dict(limits)}
        case StringChoice(values):
            return {"type": "string", "enum": list(values)}
        case NamedType(kind):
            return {"$ref": prefix + kind.__name__}
        case ListOf(item):
            return {"type": "array", "items": _schema(item, prefix)}
        case MapOf(value):
            return {"type": "object", "additionalProperties": _schema(value, prefix)}
        case OneOf(choices):
            return {"anyOf": [_schema(one, prefix) for one in choices]}


def _method(call: DescribedRequest, direction: str) -> Tree:
    by_name = {kind.name: kind for kind in all_types()}
    params: list[Tree] = []
    for field in by_name[call.params.__name__].fields:
        row: dict[str, Tree] = {"name": field.name, "required": field.is_required}
        if field.doc:
            row["description"] = field.doc
        row["schema"] = _schema(field.shape, COMPONENTS)
        params.append(row)
    result: Tree = {"type": "null"} if call.result is None else {"$ref": COMPONENTS + call.result.__name__}
    made: dict[str, Tree] = {
        "name": call.name,
        "description": call.doc,
        "paramStructure": "by-name",
        "params": params,
        "result": {"name": call.result.__name__ if call.result else "nothing", "schema": result},
    }
    if call.errors:
        made["errors"] = [{"$ref": ERRORS + error.__name__} for error in call.errors]
    example = examples().calls[call.name]
    given: list[Tree] = [{"name": name, "value": value} for name, value in example.params.items()]
    made["examples"] = [
        {"name": call.name, "params": given, "result": {"name": "result", "value": example.result}}
    ]
    made["x-direction"] = direction
    return made
