"""Gemini's rules for the contents, the system instruction and the tools of a request.

From the API reference (`Content`, `Part`, `FunctionDeclaration`, `Schema`), the guides to function calling,
thought signatures, images and documents (seen 2026-11), and the texts of its 400 answers: "Please ensure that
multiturn requests alternate between user and model", "Please ensure that function call turn comes immediately
after a user turn or after a function response turn", "Please ensure that the number of function response
parts is equal to the number of function call parts of the function call turn", "Requests ending with a model
turn are not supported", "contents.parts must not be empty", "Invalid value at 'thought_signature'
(TYPE_BYTES), Base64 decoding failed", "Function call is missing a thought_signature in functionCall parts"
(Gemini 3), "Invalid JSON payload received. Unknown name", "parameters.properties[a].type: must be specified
when not using one_of, any_of or all_of fields", "enum: only allowed for STRING type", "enum[0]: cannot be
empty", "items: missing field", "required[0]: property is not defined", "properties: only allowed for OBJECT
type", "parameters.properties: should be non-empty for OBJECT type", "Invalid function name".
"""

from __future__ import annotations

import base64
import binascii
import re

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")
MEDIA = re.compile(r"image/(png|jpeg|webp|heic|heif)|application/pdf|text/plain|audio/\w+|video/\w+")
URI = re.compile(r"(https?|gs)://")
DATA = ("text", "functionCall", "functionResponse", "inlineData", "fileData")
OF_MODEL = ("executableCode", "codeExecutionResult")
BESIDE = {"thought", "thoughtSignature"}
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
FIELDS = {
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
}
FORMATS = {
    "string": ("enum", "date-time"),
    "number": ("float", "double"),
    "integer": ("int32", "int64"),
}


def problems(
    contents: list[dict],
    system: str | None = None,
    tools: list[dict] | None = None,
    is_third: bool = False,
) -> list[str]:
    """Return what the API would refuse; empty for a valid request. `is_third` means Gemini 3 or later."""
    found: list[str] = []
    if system is not None and not system.strip():
        found.append("systemInstruction is empty")
    calls: list[dict] = []
    before, was_results = None, False
    for index, content in enumerate(contents):
        where = f"contents[{index}]"
        role, parts = content.get("role"), content.get("parts")
        if role not in ("user", "model"):
            found.append(f"{where}: role {role!r}")
        if not isinstance(parts, list) or not parts:
            found.append(f"{where}: parts are {parts!r}")
            continue
        responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
        if role == before and not (role == "user" and was_results and not responses):
            found.append(f"{where}: two contents of {role!r}")
        found += _answers(responses, calls, len(parts), where)
        for at, part in enumerate(parts):
            found += _part(part, role, f"{where}.parts[{at}]")
        calls = [part["functionCall"] for part in parts if "functionCall" in part]
        before, was_results = role, bool(responses)
    if contents and contents[0].get("role") != "user":
        found.append("the first content is not the user's")
    if contents and contents[-1].get("role") != "user":
        found.append("the last content is the model's")
    if is_third:
        found += _unsigned(contents)
    return found + _tools(tools)


def _answers(responses: list[dict], calls: list[dict], parts: int, where: str) -> list[str]:
    if len(responses) != len(calls):
        return [f"{where}: {len(responses)} function responses to {len(calls)} calls"]
    found = []
    if responses and len(responses) != parts:
        found.append(f"{where}: other parts beside function responses")
    for response, call in zip(responses, calls, strict=True):
        if (response.get("name"), response.get("id")) != (call.get("name"), call.get("id")):
            found.append(f"{where}: response {response.get('name')!r} to call {call.get('name')!r}")
    return found


def _part(part: dict, role: str, where: str) -> list[str]:
    held = [name for name in part if name not in BESIDE]
    if len(held) != 1 or held[0] not in (DATA if role == "user" else (*DATA, *OF_MODEL)):
        return [f"{where}: a part with {sorted(part)}"]
    found = []
    if BESIDE & part.keys() and role != "model":
        found.append(f"{where}: a thought of the user's")
    if "thoughtSignature" in part and not _is_base64(part["thoughtSignature"]):
        found.append(f"{where}: thoughtSignature {part['thoughtSignature']!r}")
    if part.get("thought") and "thoughtSignature" not in part:
        found.append(f"{where}: a thought without its signature")
    value = part[held[0]]
    match held[0]:
        case "text":
            if not isinstance(value, str) or (not value and "thoughtSignature" not in part):
                found.append(f"{where}: empty text")
        case "functionCall":
            if role != "model" or not NAME.fullmatch(value.get("name", "")):
                found.append(f"{where}: a call of {value.get('name')!r} by {role}")
            if not isinstance(value.get("args"), dict):
                found.append(f"{where}: args are no object")
        case "functionResponse":
            if role != "user" or not NAME.fullmatch(value.get("name", "")):
                found.append(f"{where}: a response of {value.get('name')!r} by {role}")
            if not isinstance(value.get("response"), dict):
                found.append(f"{where}: response is no object")
            for inner in value.get("parts", ()):
                if "inlineData" not in inner or _media(inner["inlineData"], where):
                    found.append(f"{where}: a part in a response: {sorted(inner)}")
        case "inlineData":
            found += _media(value, where)
        case "fileData":
            if not URI.match(value.get("fileUri", "")):
                found.append(f"{where}: fileUri {value.get('fileUri')!r}")
    return found


def _media(value: dict, where: str) -> list[str]:
    if not MEDIA.fullmatch(value.get("mimeType", "")) or not _is_base64(value.get("data")):
        return [f"{where}: inlineData of {value.get('mimeType')!r}"]
    return []


def _is_base64(text: object) -> bool:
    if not isinstance(text, str) or not text:
        return False
    try:
        base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_" if set("-_") & set(text) else None)
    except binascii.Error:
        return False
    return True


def _unsigned(contents: list[dict]) -> list[str]:
    """Calls of the current turn, each content's first, that Gemini 3 wants a signature of."""
    found = []
    for index in range(len(contents) - 1, -1, -1):
        parts = contents[index]["parts"]
        if contents[index]["role"] == "user":
            if "functionResponse" not in parts[0]:
                break
            continue
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and "thoughtSignature" not in first:
            found.append(f"contents[{index}]: a call without thought_signature")
    return found


def _tools(tools: list[dict] | None) -> list[str]:
    if tools is None:
        return []
    found: list[str] = []
    names: list[str] = []
    for tool in tools:
        if list(tool) != ["functionDeclarations"] or not tool["functionDeclarations"]:
            found.append(f"tool {tool!r}")
            continue
        for declared in tool["functionDeclarations"]:
            names.append(declared.get("name", ""))
            if not NAME.fullmatch(names[-1]) or not declared.keys() <= {"name", "description", "parameters"}:
                found.append(f"declaration {declared!r}")
            parameters = declared.get("parameters")
            if parameters is not None:
                if parameters.get("type") != "object" or not parameters.get("properties"):
                    found.append(f"{names[-1]}.parameters: should be a non-empty OBJECT")
                found += schema_problems(parameters, f"{names[-1]}.parameters")
    if len(set(names)) != len(names):
        found.append(f"names {names} are not unique")
    return found


def schema_problems(schema: object, where: str) -> list[str]:
    """Return what the API would refuse in one schema."""
    if not isinstance(schema, dict):
        return [f"{where}: {schema!r}"]
    found = [f"{where}: unknown name {name!r}" for name in schema.keys() - FIELDS]
    kind = schema.get("type")
    if kind is None and "anyOf" not in schema:
        found.append(f"{where}.type: must be specified")
    if kind is not None and (not isinstance(kind, str) or kind.lower() not in TYPES):
        found.append(f"{where}.type: {kind!r}")
        kind = None
    if "enum" in schema and (kind != "string" or not all(isinstance(v, str) and v for v in schema["enum"])):
        found.append(f"{where}.enum: {schema['enum']!r} of {kind}")
    if "format" in schema and schema["format"] not in FORMATS.get(str(kind), ()):
        found.append(f"{where}.format: {schema['format']!r} of {kind}")
    if kind != "object" and ({"properties", "required"} & schema.keys()):
        found.append(f"{where}: properties of {kind}")
    properties = schema.get("properties", {})
    if "properties" in schema and not properties:
        found.append(f"{where}.properties: should be non-empty")
    found += [f"{where}.required: {name!r}" for name in schema.get("required", ()) if name not in properties]
    if (kind == "array") != ("items" in schema):
        found.append(f"{where}.items of {kind}")
    for name, inner in properties.items():
        found += schema_problems(inner, f"{where}.{name}")
    if "items" in schema:
        found += schema_problems(schema["items"], f"{where}.items")
    branches = schema.get("anyOf", [])
    if "anyOf" in schema and not (isinstance(branches, list) and branches):
        found.append(f"{where}.anyOf: {branches!r}")
        branches = []
    for at, branch in enumerate(branches):
        found += schema_problems(branch, f"{where}.anyOf[{at}]")
    return found
