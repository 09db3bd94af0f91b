"""Render a request in Gemini's format (`generateContent`): `systemInstruction` and `contents`.

The rules come from Gemini's API reference, its guides to function calling and thought signatures, and its
error messages:

- Roles are user and model. The first and the last content are the user's ("Requests ending with a model turn
  are not supported", seen 2026-07). Parts are never empty.
- The content after a turn's calls contains one `functionResponse` part for each call, with the same name
  ("Please ensure that the number of function response parts is equal to the number of function call parts").
  It contains nothing else (seen 2026-07 with text, 2026-01 with images), so a user's text follows in a
  content of its own.
- A `response` is an object. From Gemini 3 on, it may come with images.
- A name begins with a letter or `_` and has at most 64 letters, digits, `_`, `.` or `-`.
- The signature of a thought is sent back unchanged with its part, or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Raw

from compactd.core.history.projection import Projected, Projection
from compactd.formats.messages.gemini_parts import (
    gemini_part,
    in_system_tags,
    is_signature,
    may_be_in_result,
    media_of,
    response_of,
    signature_of,
    user_parts,
)
from compactd.formats.messages.gemini_schema import parameters
from compactd.formats.messages.provenance import GEMINI, is_third_generation, maker, may_send_back
from compactd.formats.messages.rendering import (
    CONTINUES,
    Json,
    Rendered,
    SafeNames,
    arguments_object,
    block_text,
    encode,
    from_result,
    joined_prompts,
    leading_system,
)
from compactd.protocol.messages import (
    Block,
    Document,
    Image,
    Opaque,
    Text,
    Thinking,
    Tool,
    ToolCall,
    ToolResult,
    Unknown,
)

SIGNATURE_OF_ANOTHER = "skip_thought_signature_validator"
"""The signature for a call of the current turn that another model made. Gemini 3 requires a signature, and
Gemini's guide to thought signatures (FAQ, seen 2026-11) says to send this one.
"""

_MAX_NAME_CHARS = 64


def render(
    system: str | None, tools: Sequence[Tool], projection: Projection, model: str | None = None
) -> Rendered:
    """Return the request in Gemini's format, for `model` if it is known. O(bytes)."""
    names = SafeNames(_MAX_NAME_CHARS, (tool.name for tool in tools), dotted=True)
    written = _RequestBuilder(names, model)
    leading = leading_system([projected.message for projected in projection.messages])
    for projected in projection.messages[len(leading) :]:
        written.add(projected)
    return Rendered(
        system=joined_prompts(system, leading),
        messages=written.contents(),
        tools=[_tools(tools, names)] if tools else None,
        names=names.made_names(),
    )


def _tools(tools: Sequence[Tool], names: SafeNames) -> Raw:
    declarations = []
    for tool in tools:
        given: Json = {"name": names.of(tool.name)}
        if tool.description:
            given["description"] = tool.description
        schema = parameters(tool.input_schema)
        if schema is not None:
            given["parameters"] = schema
        declarations.append(given)
    return Raw(encode({"functionDeclarations": declarations}))


class _Content:
    """One content: the user's text, the model's, or the results of the model's calls."""

    def __init__(self, role: str) -> None:
        self.role = role
        self.parts: list[Json | Raw] = []
        self.results: dict[str, Json] = {}
        """Call id -> the result of the call. A content with results contains nothing else."""
        self.order: Sequence[str] = ()
        """The ids of the calls that `results` answer, in the order of the calls. Results are sent in this
        order, because some servers match results with calls by position."""

    @property
    def written(self) -> list[Json | Raw]:
        """The parts of the content, as they are sent."""
        if not self.results:
            return self.parts
        return [self.results[call_id] for call_id in self.order if call_id in self.results]


class _RequestBuilder:
    """A request under construction: the contents so far, and the images and files that wait for the next
    content of the user."""

    def __init__(self, names: SafeNames, model: str | None) -> None:
        self._contents: list[_Content] = []
        self._names = names
        self._model = model
        self._is_third = is_third_generation(model)
        # Vertex AI rejects the ids of calls ("Unknown name "id"", 400; pi omits them for that reason, seen
        # 2025-12). It matches results with calls by position.
        self._has_ids = "vertex" not in (model or "").lower()
        self._named: dict[str, str] = {}
        self._calls: list[str] = []
        self._waiting: list[Json | Raw] = []

    def add(self, projected: Projected) -> None:
        """Add the contents of one message, results first."""
        message = projected.message
        for block in message.content:
            if isinstance(block, ToolResult):
                self._result(block)
        rest = [block for block in message.content if not isinstance(block, ToolResult)]
        if message.role == "assistant":
            is_own = maker(projected.model) == GEMINI and may_send_back(GEMINI, projected.model, self._model)
            self._model_parts(rest, is_own)
            return
        parts = [part for block in rest for part in user_parts(block)]
        if message.role == "system":
            parts = in_system_tags(parts)
        if parts:
            self._flush()
            self._content("user").parts.extend(parts)

    def contents(self) -> list[Raw]:
        """Return the finished contents as JSON. The first and the last content are the user's."""
        self._flush()
        contents = self._contents
        if contents and contents[0].role == "model":
            contents.insert(0, _continue_turn())
        if contents and contents[-1].role == "model":
            contents.append(_continue_turn())
        if self._is_third:
            _sign_current_turn(contents)
        return [Raw(encode({"role": content.role, "parts": content.written})) for content in contents]

    def _content(self, role: str) -> _Content:
        last = self._contents[-1] if self._contents else None
        if last is None or last.role != role or last.results:
            last = _Content(role)
            self._contents.append(last)
        return last

    def _flush(self) -> None:
        if self._waiting:
            parts, self._waiting = self._waiting, []
            self._content("user").parts.extend(parts)

    def _model_parts(self, blocks: Sequence[Block], is_own: bool) -> None:
        parts: list[Json | Raw] = []
        pictures: list[Json | Raw] = []
        calls: list[str] = []
        signature: str | None = None
        for block in blocks:
            part: Json | Raw | None = None
            match block:
                case ToolCall():
                    name = self._names.of(block.name)
                    self._named[block.call_id] = name
                    calls.append(block.call_id)
                    args = arguments_object(block.arguments)
                    part = {"functionCall": {**self._id(block.call_id), "name": name, "args": args}}
                case Text() if signature is not None or block_text(block):
                    # A signature may belong to an empty text. Then both are sent back.
                    part = {"text": block.text}
                case Thinking(text=text, signature=str(signed)) if is_own and is_signature(signed):
                    part = {"text": text, "thought": True, "thoughtSignature": signed}
                case Opaque() if (found := signature_of(block)) is not None:
                    signature = found
                case Opaque():
                    part = gemini_part(block)
                case Image() | Document() if signature is None:
                    pictures.extend(user_parts(block))
                case Image() | Document() | Unknown():
                    part = next(iter(user_parts(block)), None)
                case _:
                    pass
            if isinstance(part, dict) and signature is not None and "thoughtSignature" not in part:
                part["thoughtSignature"] = signature
                signature = None
            if part is not None:
                parts.append(part)
        if signature is not None:
            parts.append({"text": "", "thoughtSignature": signature})
        if parts:
            self._flush()
            self._content("model").parts.extend(parts)
            self._calls = calls
        # The model's content may contain an image only with the image's signature. Images without one go into
        # the user's next content.
        self._waiting.extend(pictures)

    def _id(self, call_id: str) -> Json:
        return {"id": call_id} if self._has_ids else {}

    def _result(self, result: ToolResult) -> None:
        call_id, content = result.call_id, result.content
        media: list[Json | Raw] = []
        if isinstance(content, str):
            text = content
        else:
            found = [(block, media_of(block)) for block in content]
            text = "\n".join(text for block, part in found if part is None and (text := block_text(block)))
            media = [part for _, part in found if part is not None]
        given: Json = {
            **self._id(call_id),
            "name": self._named.get(call_id) or self._names.of(result.name or "tool"),
            "response": response_of(text, result.is_error),
        }
        inside = [part for part in media if self._is_third and may_be_in_result(part)]
        if inside:
            given["parts"] = inside
        beside = [part for part in media if part not in inside]
        if beside:
            self._waiting.append({"text": from_result(call_id)})
            self._waiting.extend(beside)
        last = self._contents[-1] if self._contents else None
        if last is None or not last.results:
            last = _Content("user")
            last.order = self._calls
            self._contents.append(last)
        last.results[call_id] = {"functionResponse": given}


def _continue_turn() -> _Content:
    content = _Content("user")
    content.parts.append({"text": CONTINUES})
    return content


def _sign_current_turn(contents: Sequence[_Content]) -> None:
    """Add `SIGNATURE_OF_ANOTHER` to the first call of each model content after the user's last text, unless
    the call has a signature.

    "Function call is missing a thought_signature in functionCall parts" (400, Gemini 3, seen 2026-03).
    """
    for content in reversed(contents):
        if content.role == "user" and not content.results:
            return
        first = next(
            (part for part in content.parts if isinstance(part, dict) and "functionCall" in part), None
        )
        if first is not None:
            first.setdefault("thoughtSignature", SIGNATURE_OF_ANOTHER)
