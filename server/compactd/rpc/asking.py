"""From the wire to the inside: what our methods' params ask of sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw

from compactd.core.asked import CompactRequest
from compactd.core.endpoints import bare_endpoint, has_secret_place
from compactd.core.intake import New, Report
from compactd.core.model_names import provider_of
from compactd.core.observed import Observed, key
from compactd.core.pairs import is_blank
from compactd.core.profiles import PROFILES
from compactd.core.registry import Lookup
from compactd.core.rules import Rules
from compactd.core.settings import GivenSettings, validate
from compactd.core.usage import normalise
from compactd.errors import InvalidParams
from compactd.formats.base import read_messages
from compactd.formats.tools import decode_tools, encode_tool
from compactd.messages import Message, Tool
from compactd.recovery import FailedRequest
from compactd.rpc import wire

SECRET_LEFT_OUT = (
    "what `base_url` held besides scheme, host, port and path was left out: compactd keeps no credentials in "
    "an address. Put a key into keys.toml, or into the provider's environment variable"
)
"""A warning for `session/start`."""


def endpoint_of(base_url: str | None) -> str | None:
    """A client's `base_url`, without user, password, query and fragment."""
    return None if base_url is None else bare_endpoint(base_url)


def endpoint_warnings(model: str | wire.ModelRef | None) -> tuple[str, ...]:
    """What to say of an address that held more than an address."""
    base_url = model.base_url if isinstance(model, wire.ModelRef) else None
    return (SECRET_LEFT_OUT,) if base_url is not None and has_secret_place(base_url) else ()


def model_of(model: str | wire.ModelRef | None) -> tuple[str | None, str | None]:
    """(name, base URL) of the model."""
    if model is None or isinstance(model, str):
        if model is not None and not model.strip():
            raise InvalidParams("model is empty; leave it out, or name one", "$.model")
        return model, None
    name = model.id if model.provider is None else f"{model.provider}/{model.id}"
    return name, endpoint_of(model.base_url)


def tools_of(raws: tuple[Raw, ...] | None) -> tuple[tuple[Tool, Raw], ...] | None:
    """The tools given, each with its bytes in our shape; None where none were."""
    if raws is None:
        return None
    tools = [tool for index, raw in enumerate(raws) for tool in decode_tools(raw, f"$.tools[{index}]")]
    return tuple((tool, encode_tool(tool)) for tool in tools)


def new(
    params: wire.AppendParams | wire.EndParams, read: Sequence[tuple[Message, Raw]], tokens: Sequence[int]
) -> New:
    """What is to be appended; `tokens` are of each message read."""
    own: list[Report | None] = [
        None if message.usage is None else normalise(message.usage, f"$.messages[{index}].usage")
        for index, (message, _) in enumerate(read)
    ]
    files = params.files
    return New(
        read=read,
        tokens=tokens,
        own_reports=own if any(report is not None for report in own) else (),
        report=None if params.usage == wire.NULL else normalise(params.usage, "$.usage"),
        epoch=params.epoch,
        stop_reason=params.stop_reason if isinstance(params, wire.EndParams) else None,
        files_read=files.read if files else (),
        files_modified=files.modified if files else (),
    )


def text_of(body: Raw, message: str | None) -> str:
    """The words of an error: a string as it is, any other JSON as its text."""
    if body == wire.NULL:
        return message or ""
    text = bytes(body).decode("utf-8", "replace")
    return msgspec.json.decode(body, type=str) if text.lstrip()[:1] == '"' else text


def report_of(usage: Raw) -> Report | None:
    """The usage report given."""
    return None if usage == wire.NULL else normalise(usage, "$.usage")


def failed_request(params: wire.ErrorParams) -> FailedRequest:
    """What is told of a failed request."""
    error = params.error
    return FailedRequest(
        status=error.status,
        code=None if error.code is None else str(error.code),
        text=text_of(error.body, error.message),
        provider=error.provider,
        report=report_of(params.usage),
        epoch=params.epoch,
    )


def prompt_of(params: wire.PromptParams) -> tuple[Message, Raw]:
    """The user's message of a prompt. Raises `InvalidParams` for none, or one without content."""
    if (params.text is None) == (params.content == wire.NULL):
        raise InvalidParams("give `text` or `content`, one of them", "$.text")
    content = params.content if params.text is None else Raw(msgspec.json.encode(params.text))
    raw = Raw(b'{"role":"user","content":%b}' % bytes(content))
    message = read_messages((raw,), path="$")[0][0]
    if all(is_blank(block) for block in message.content):
        raise InvalidParams("the prompt is empty; say something", "$.text")
    return message, raw


def failure_asked(params: wire.ClassifyParams) -> FailedRequest:
    """The failure to be classified."""
    return FailedRequest(
        status=params.status,
        code=None if params.code is None else str(params.code),
        text=text_of(params.body, params.message),
        provider=params.provider,
        report=report_of(params.usage),
        window=params.window,
        stop_reason=params.stop_reason,
    )


def rules_of(profile: str | None) -> Rules | None:
    """A profile's rules; none where none is named. Raises `InvalidParams` for one that there is not."""
    if profile is None:
        return None
    if profile not in PROFILES:
        raise InvalidParams(f"{profile!r} is no profile; there are {', '.join(PROFILES)}", "$.profile")
    return PROFILES[profile].rules


def observation_meant(params: wire.ForgetParams, found: Lookup | None) -> Callable[[Observed], bool]:
    """Whether an observation is of what `params` name; `found` is the lookup of its model."""
    host = None if params.base_url is None else key("", None, params.base_url)[2]

    def is_meant(one: Observed) -> bool:
        _, model, endpoint = one.key
        if found is not None and model != key(found.model, None, one.base_url)[1]:
            return False
        if params.provider is not None and provider_of(one.provider or "") != provider_of(params.provider):
            return False
        return host is None or endpoint == host

    return is_meant


def settings_of(given: GivenSettings | None) -> GivenSettings | None:
    """The settings given, if each is in its range; else `InvalidParams` with its path."""
    return None if given is None else validate(given)


def compact_request(params: wire.CompactParams) -> CompactRequest:
    """The compaction asked for. Raises `InvalidParams` for several budgets."""
    keep_messages = params.keep_messages if params.keep_messages is not None else params.preserve_count
    budgets = {
        "keep_recent": params.keep_recent,
        "keep_messages": keep_messages,
        "target_tokens": params.target_tokens,
    }
    given = [name for name, value in budgets.items() if value is not None]
    if len(given) > 1:
        raise InvalidParams(f"{' and '.join(given)} exclude each other; give one budget", f"$.{given[1]}")
    return CompactRequest(
        trigger="manual",
        keep_recent=params.keep_recent,
        keep_messages=keep_messages,
        target_tokens=params.target_tokens,
        instructions=params.instructions,
        strategy=params.strategy,
        model=params.model,
        may_ask_model=params.model is not None,
        force=params.force is True,
    )
