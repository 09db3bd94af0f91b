"""What LiteLLM's hooks are told about a request: its session, its model, and what it contains in addition to
its messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import litellm
import msgspec

from compactd.integrations.frameworks.engine import valid_id
from compactd.integrations.frameworks.history import Setup, View
from compactd.integrations.frameworks.litellm.messages import ChatMessage, field, json_bytes, text_of

PREFIX = "litellm:"
_METADATA = ("metadata", "litellm_metadata")
_GENERATED = "litellm_session_id_generated"
"""What the proxy puts next to a session id that it made up for one request."""
_LIMITS = ("max_tokens", "max_completion_tokens")


def session_name(request: Mapping[str, Any]) -> str | None:
    """Return the name of a request's session; None if the caller gave no session id.

    In the proxy, each virtual key has sessions of its own: two clients that choose the same id do not share
    one.
    """
    found = [each for name in _METADATA if isinstance(each := request.get(name), Mapping)]
    if any(each.get(_GENERATED) for each in found):
        return None
    for given in (request.get("litellm_session_id"), *(each.get("session_id") for each in found)):
        if isinstance(given, str | int) and given:
            return name_of(str(given), next((key for each in found if (key := _key_of(each))), ""))
    return None


def name_of(session_id: str, key: str = "") -> str:
    """Return the name of the session `session_id`. `key`: what the proxy says of the caller's key. The name
    has a digest of it only.
    """
    if not key:
        return valid_id(PREFIX + session_id)
    return valid_id(f"{PREFIX}{blake2b(key.encode(), digest_size=8).hexdigest()}:{session_id}")


def _key_of(metadata: Mapping[str, Any]) -> str:
    key = metadata.get("user_api_key_hash") or metadata.get("user_api_key")
    return key if isinstance(key, str) else ""


def setup_of(request: Mapping[str, Any], opening: Sequence[ChatMessage], context_window: int | None) -> Setup:
    """Return what a request contains in addition to its messages. `opening`: its system prompt. O(tools)."""
    model = _model_of(request)
    tools = request.get("tools") or request.get("functions") or ()
    schema = request.get("response_format")
    texts = [text_of(field(message, "content")) for message in opening]
    if isinstance(schema, Mapping):
        texts.append(json_bytes(schema).decode())
    return Setup(
        model=model,
        context_window=context_window or _tokens(request.get("model_info")),
        fallback_window=_known_window(model),
        system_prompt="\n\n".join(text for text in texts if text),
        tools_key=json_bytes(tools) if tools else b"",
        tools=lambda: [msgspec.json.decode(json_bytes(tool)) for tool in tools],
    )


def _model_of(request: Mapping[str, Any]) -> str | None:
    """Return the model as `provider/id`; the id alone if no provider is named."""
    model, provider = request.get("model"), request.get("custom_llm_provider")
    if not isinstance(model, str) or not model:
        return None
    if "/" not in model and isinstance(provider, str) and provider:
        model = f"{provider}/{model}"
    maker, slash, name = model.partition("/")
    return f"{maker.replace('_', '-')}/{name}" if slash else model


def _known_window(model: str | None) -> int | None:
    """Return the window that LiteLLM's list of models has. Asks no server."""
    if model is None:
        return None
    for name in (model, model.partition("/")[2]):
        if window := _tokens(litellm.model_cost.get(name)):
            return window
    return None


def _tokens(info: object) -> int | None:
    window = info.get("max_input_tokens") if isinstance(info, Mapping) else None
    return window if isinstance(window, int) and window > 0 else None


def limited(request: dict[str, Any], view: View) -> dict[str, Any]:
    """Return the request with its limits of the output lowered to what fits."""
    limit = view.max_output_tokens
    if limit is None or limit <= 0:
        return request
    lower = {name: limit for name in _LIMITS if isinstance(request.get(name), int) and request[name] > limit}
    return {**request, **lower} if lower else request
