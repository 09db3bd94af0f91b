"""Write a session as a trajectory of SWE-agent or mini-swe-agent (see `swe_agent`, `mini_swe_agent`)."""

from __future__ import annotations

import msgspec

from compactd import __version__
from compactd.core.text.message_text import join_text_blocks
from compactd.formats.agents.mini_swe_agent import BY_PROGRAM, BY_USER
from compactd.formats.files.session_file import SessionFile
from compactd.formats.files.writer_parts import (
    Json,
    blocks_in,
    calls_of,
    is_by_program,
    is_synthetic,
    only_result,
    picture_url,
    result_text,
    thinking_of,
    usage_report,
    without_none,
)
from compactd.formats.messages.json_parts import json_object
from compactd.formats.messages.rendering import arguments_text
from compactd.protocol.messages import Block, Image, Message, Text, ToolCall, Usage

AGENT = "main"
FORMAT = "mini-swe-agent-1.1"


def write(file: SessionFile) -> bytes:
    """Return the session `file` as a trajectory of SWE-agent. In `file`, each tool result must be a message
    of its own (see `writer_parts.split_messages`). O(bytes).
    """
    history: list[Json] = []
    steps: list[Json] = []
    if file.system_prompt:
        history.append(_item("system_prompt", {"role": "system", "content": file.system_prompt}))
    for message, _ in file.messages:
        if message.role == "tool":
            result = only_result(message)
            text = _content(blocks_in(result))
            given: Json = {"role": "tool", "content": text, "tool_call_ids": [result.call_id]}
            history.append(_item("observation", given))
            if steps:
                steps[-1]["observation"] = result_text(result)
        elif message.role == "assistant":
            history.append(_answer(message))
            steps.append(_step(message))
        else:
            # Readers take every user message after the first answer for a program's. So after that answer,
            # only messages with the mark `synthetic` are marked.
            is_demo = is_by_program(message) and (not steps or is_synthetic(message))
            more: Json = {"is_demo": True} if is_demo else {}
            kind = "system_prompt" if message.role == "system" else "observation"
            given = {"role": message.role, "content": _content(message.content), **more}
            history.append(_item(kind, given))
    body: Json = {"environment": AGENT, "trajectory": steps, "history": history, "info": {}}
    if file.model:
        body["replay_config"] = {"agent": {"model": {"name": file.model}}}
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def _item(kind: str, given: Json) -> Json:
    return {"message_type": kind, **given, "agent": AGENT}


def _answer(message: Message) -> Json:
    calls = calls_of(message.content)
    text = _content([block for block in message.content if isinstance(block, Text | Image)])
    given: Json = {"role": "assistant", "content": text, "thought": join_text_blocks(message.content)}
    given["action"] = _action(calls[0]) if calls else ""
    # If no message has `tool_calls`, the history is read as thoughts and actions.
    given["tool_calls"] = [_call(call) for call in calls]
    blocks = [
        without_none({"type": "thinking", "thinking": block.text, "signature": block.signature})
        for block in thinking_of(message.content)
        if block.redacted is None
    ]
    if blocks:
        given["thinking_blocks"] = blocks
    return _item("action", given)


def _step(message: Message) -> Json:
    calls, text = calls_of(message.content), join_text_blocks(message.content)
    action = _action(calls[0]) if calls else ""
    return {"action": action, "observation": "", "response": text, "thought": text, "state": {}}


def _action(call: ToolCall) -> str:
    text = arguments_text(call.arguments)
    given = json_object(text)
    if given is None:
        return text
    command = given.get("command")
    if command is not None and bytes(command)[:1] == b'"':
        return msgspec.json.decode(command, type=str)
    return f"{call.name} {text}"


def _call(call: ToolCall) -> Json:
    function = {"name": call.name, "arguments": arguments_text(call.arguments)}
    return {"id": call.call_id, "type": "function", "function": function}


def _content(blocks: list[Block] | tuple[Block, ...]) -> str | list[Json]:
    """Return `blocks` as a message's content: a string for at most one block of text, otherwise a list of
    parts.
    """
    if all(isinstance(block, Text) for block in blocks) and len(blocks) <= 1:
        return join_text_blocks(blocks)
    parts: list[Json] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Image):
            parts.append({"type": "image_url", "image_url": {"url": picture_url(block)}})
    return parts


# --- mini-swe-agent ---------------------------------------------------------------------------------


def write_mini(file: SessionFile) -> bytes:
    """Return the session `file` as a trajectory of mini-swe-agent, version 2, which has tool
    calls. O(bytes).
    """
    messages: list[Json] = []
    if file.system_prompt:
        messages.append({"role": "system", "content": file.system_prompt})
    messages += [_mini(message) for message, _ in file.messages]
    config: Json = {"model": {"model_name": file.model}} if file.model else {}
    if file.working_dir:
        config["environment"] = {"cwd": file.working_dir}
    info = {"config": config, "mini_version": __version__, "exit_status": "", "submission": ""}
    body = {"info": info, "messages": messages, "trajectory_format": FORMAT}
    return msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n"


def _mini(message: Message) -> Json:
    extra: Json = {} if message.created_at is None else {"timestamp": message.created_at}
    if message.role == "tool":
        result = only_result(message)
        given: Json = {"role": "tool", "tool_call_id": result.call_id, "content": _content(blocks_in(result))}
        extra["returncode"] = int(result.is_error)
    else:
        given = {"role": message.role, "content": _content(message.content)}
    if message.role == "user":
        extra["interrupt_type"] = BY_PROGRAM if is_by_program(message) else BY_USER
    if message.role == "assistant":
        calls = calls_of(message.content)
        given["tool_calls"] = [_call(call) for call in calls]
        thinking = "\n".join(block.text for block in thinking_of(message.content))
        if thinking:
            given["reasoning_content"] = thinking
        extra["actions"] = [{"command": _action(call), "tool_call_id": call.call_id} for call in calls]
        usage = usage_report(message)
        if usage is not None:
            extra["response"] = {"usage": _usage(usage)}
    return {**given, "extra": extra} if extra else given


def _usage(usage: Usage) -> Json:
    given = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "prompt_tokens": given,
        "completion_tokens": usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
