"""Providers' own compaction, by their documented rules. It shares no code with what it tests.

    provider = ClaudeCompaction(Answer(text="ok"))
    with Loopback(reply=provider.reply) as server:
        ...

Anthropic: platform.claude.com, "Compaction on demand" (sections "Request a summary", "Continue from the
summary", "Handle a missing summary or an error", "Count compaction usage", "Limits and interactions with
other features"), "Compaction that keeps recent turns"; types of the SDK anthropic 2.14.0. Read 2026-11-27.

OpenAI: developers.openai.com, "Compaction", "Standalone compact endpoint"; API reference, "Compact a
response"; the types of the SDK openai 3.57.0. Read 2026-11-27.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from tests.support.loopback.script import Answer, Events, Fail, Step
from tests.support.loopback.seen import Seen
from tests.support.loopback.writing import Json, line

ON_DEMAND = "compact-2026-09-04"
THRESHOLD = "compact-2026-01-12"
CLAUDES = (
    "claude-fable-5-1", "claude-mythos-5-1", "claude-fable-5", "claude-mythos-5", "claude-mythos-preview",
    "claude-opus-5-5", "claude-opus-5", "claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6",
    "claude-sonnet-5", "claude-sonnet-4-6",
)  # fmt: skip
"""The models with compaction on demand."""
MAX_INSTRUCTION_CHARS = 16_384


class Refused(Exception):
    """The request breaks a rule. `code` is the `error_code` of the details, if the API names one."""

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ClaudeCompaction:
    """Anthropic's Messages API with compaction on demand."""

    def __init__(self, answer: Answer | None = None, *, summary: str = "The user works on a parser.") -> None:
        """`answer` is the answer to requests that are no compaction. `summary` begins each summary."""
        self.answer = answer or Answer(text="ok")
        self.summary = summary
        self.fails_with: str | None = None
        """The stop reason of a compaction that gives no summary."""
        self.tool_changes: list[Json] | None = None
        self.compactions: list[Json] = []
        """The bodies of the compaction requests."""
        self.replies: list[Json] = []
        """The bodies of the other requests that kept the rules."""
        self.refusals: list[str] = []
        self.blocks: dict[str, Json] = {}
        """Signature -> the block that was returned with it."""

    def reply(self, seen: Seen) -> Step:
        """Return what the server answers."""
        betas = {beta.strip() for beta in seen.headers.get("anthropic-beta", "").split(",")}
        try:
            self.check_blocks(seen.body, betas)
            if "compaction" not in seen.body:
                self.replies.append(seen.body)
                return self.answer
            self._check_request(seen.body, betas)
        except Refused as refused:
            self.refusals.append(refused.code or refused.message)
            error: Json = {"type": "invalid_request_error", "message": refused.message}
            if refused.code is not None:
                error["details"] = {"error_code": refused.code}
            return Fail(400, line({"type": "error", "error": error, "request_id": "req_1"}))
        self.compactions.append(seen.body)
        return self._summary(seen)

    def _check_request(self, body: Json, betas: set[str]) -> None:
        """Check the rules of a request for a summary."""
        if ON_DEMAND not in betas:
            raise Refused(f"compaction: requires anthropic-beta: {ON_DEMAND}")
        compaction = body["compaction"]
        if not isinstance(compaction, dict) or compaction.get("type") != "summarize":
            raise Refused("compaction.type: Input should be 'summarize'")
        if extra := sorted(set(compaction) - {"type", "instructions"}):
            raise Refused(f"compaction.{extra[0]}: Extra inputs are not permitted")
        if len(compaction.get("instructions") or "") > MAX_INSTRUCTION_CHARS:
            raise Refused("compaction.instructions: String should have at most 16384 characters")
        if body["model"] not in CLAUDES:
            raise Refused(f"compaction: not supported by {body['model']}")
        for field in ("context_management", "stop_sequences", "output_format"):
            if body.get(field):
                raise Refused(f"compaction cannot be combined with {field}")
        if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
            raise Refused("compaction cannot be combined with a tool_choice of type any or tool")
        if (body.get("output_config") or {}).get("format"):
            raise Refused("compaction cannot be combined with output_config.format")
        if not any(message["role"] in ("user", "assistant") for message in body["messages"]):
            raise Refused("There is nothing to summarize.", "compaction_nothing_to_summarize")
        last = body["messages"][-1]
        content = last["content"] if isinstance(last["content"], list) else []
        if last["role"] == "assistant" and any(block["type"] == "tool_use" for block in content):
            raise Refused("The last turn has a call without a result.", "compaction_incomplete_turn")

    def check_blocks(self, body: Json, betas: set[str]) -> None:
        """Check the rules of the blocks in a request, with or without `compaction`."""
        found = [
            (at, index, message["role"], block)
            for at, message in enumerate(body["messages"])
            if isinstance(message["content"], list)
            for index, block in enumerate(message["content"])
            if block["type"] == "compaction"
        ]
        if found and not betas & {ON_DEMAND, THRESHOLD}:
            raise Refused(
                f"messages.{found[0][0]}.content.{found[0][1]}: 'compaction' is not an expected type"
            )
        full = [one for one in found if one[3].get("content") is not None]
        if len(full) > 1:
            raise Refused("More than one compaction block has content.", "compaction_block_ambiguous")
        for at, index, role, block in full:
            if not block.get("signature"):
                continue  # That of a threshold. It stands after what it replaces.
            if ON_DEMAND not in betas:
                raise Refused(f"messages.{at}.content.{index}: 'compaction' is not an expected type")
            if body.get("context_management"):
                raise Refused("context_management cannot be combined with a signed compaction block")
            if (at, index) != (0, 0) or role == "system":
                raise Refused("The compaction block must come first.", "compaction_block_misplaced")
            bare = {name: value for name, value in block.items() if name != "cache_control"}
            issued = self.blocks.get(block["signature"])
            if issued is None:
                raise Refused("The signature does not verify.", "compaction_signature_invalid")
            if extra := sorted(set(bare) - set(issued)):
                raise Refused(f"messages.0.content.0.compaction.{extra[0]}: Extra inputs are not permitted")
            if bare.get("tool_changes") != issued.get("tool_changes"):
                raise Refused("The tool changes differ.", "compaction_tool_changes_mismatch")
            if bare != issued:
                raise Refused("The content differs from what was signed.", "compaction_content_mismatch")

    def _summary(self, seen: Seen) -> Step:
        """Return the answer to a request for a summary: one block, whole, also if it is streamed."""
        usage = {
            "input_tokens": 0,
            "output_tokens": 0,
            "iterations": [{"type": "compaction", "input_tokens": seen.tokens, "output_tokens": 50}],
        }
        content = [] if self.fails_with is not None else [self._block(seen.raw)]
        stop = self.fails_with or "compaction"
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": seen.body["model"],
            "stop_sequence": None,
        }  # fmt: skip
        if not seen.body.get("stream"):
            return Fail(200, line({**message, "content": content, "stop_reason": stop, "usage": usage}))
        begun = {
            **message,
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }
        events: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
        for index, block in enumerate(content):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events.append({"type": "content_block_stop", "index": index})
        end = {"stop_reason": stop, "stop_sequence": None}
        events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
        return Events(tuple(events))

    def _block(self, raw: bytes) -> Json:
        signature = hashlib.sha256(raw + str(len(self.blocks)).encode()).hexdigest()
        text = f"{self.summary} (summary {len(self.blocks) + 1})"
        block: Json = {"type": "compaction", "content": text, "signature": signature}
        if self.tool_changes is not None:
            block["tool_changes"] = self.tool_changes
        self.blocks[signature] = block
        return block


COMPACT_FIELDS = frozenset(
    (
        *("model", "input", "instructions", "previous_response_id", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "service_tier", "image"),
    )
)
"""The parameters of `/responses/compact`."""


class OpenAICompaction:
    """OpenAI's Responses API with `/responses/compact`."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer or Answer(text="ok")
        self.compactions: list[Json] = []
        self.replies: list[Json] = []
        self.refusals: list[str] = []
        self.windows: dict[str, list[Json]] = {}
        """Encrypted content -> the window that was returned with it."""
        self.adds: list[Json] = []
        """Items that a server which breaks the rules adds to each window."""

    def reply(self, seen: Seen) -> Step:
        """Return what the server answers."""
        body = seen.body
        try:
            self.check_items(body.get("input"))
            if not seen.path.partition("?")[0].endswith("/compact"):
                self.replies.append(body)
                return self.answer
            if extra := sorted(set(body) - COMPACT_FIELDS):
                raise Refused(f"Unknown parameter: '{extra[0]}'.", "unknown_parameter")
            if "model" not in body:
                raise Refused("Missing required parameter: 'model'.", "missing_required_parameter")
        except Refused as refused:
            self.refusals.append(refused.code or refused.message)
            error = {"message": refused.message, "type": "invalid_request_error", "code": refused.code}
            return Fail(400, line({"error": error}))
        self.compactions.append(body)
        return Fail(200, line(self._compacted(seen)))

    def check_items(self, items: Any) -> None:
        """Check that each compaction item is unchanged, and that its window goes before it as it is."""
        given = items if isinstance(items, list) else []
        for at, item in enumerate(given):
            if item.get("type") != "compaction":
                continue
            window = self.windows.get(item.get("encrypted_content", ""))
            if window is None:
                raise Refused(
                    f"The encrypted content for item {item.get('id')} could not be verified.",
                    "invalid_encrypted_content",
                )
            if item != window[-1]:
                raise Refused("Encrypted content item_id did not match the target item id.", "invalid_value")
            if given[max(0, at + 1 - len(window)) : at + 1] != window:
                raise Refused("The compacted window was pruned or changed.", "window_changed")

    def _compacted(self, seen: Seen) -> Json:
        number = len(self.windows) + 1
        users = [item for item in seen.body["input"] if item.get("role") == "user"]
        kept = [
            {"type": "message", "role": "user", "id": f"msg_{number}_{at}", "status": "completed",
             "content": item["content"]}
            for at, item in enumerate(users)
        ]  # fmt: skip
        secret = json.dumps(seen.body["input"]).encode()
        encrypted = f"gAAAA{base64.urlsafe_b64encode(hashlib.sha512(secret).digest() * 20).decode()}{number}"
        last = {"id": f"cmp_{number}", "type": "compaction", "encrypted_content": encrypted}
        self.windows[encrypted] = [*kept, *self.adds, last]
        return {
            "id": f"resp_{number}",
            "object": "response.compaction",
            "created_at": 1_790_000_000,
            "output": self.windows[encrypted],
            "usage": {
                "input_tokens": seen.tokens,
                "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
                "output_tokens": 120,
                "output_tokens_details": {"reasoning_tokens": 20},
                "total_tokens": seen.tokens + 120,
            },
        }
