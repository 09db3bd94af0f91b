"""Conversion of method params (wire types) to the values that sessions work with, and warnings about the
params.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import get_args

import msgspec
from msgspec import Raw, Struct

from compactd.agent.recovery import FailedRequest
from compactd.core.authors.authors import begins_as_observation
from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.rules import Rules
from compactd.core.budget.settings import validate
from compactd.core.history.append import AppendRequest, Report
from compactd.core.history.tool_pairs import is_blank
from compactd.core.models.names import provider_of
from compactd.core.models.observed import Observed, key
from compactd.core.models.registry import Lookup
from compactd.core.planning.request import CompactRequest
from compactd.core.text.endpoints import bare_endpoint, has_secret_place
from compactd.core.tokens.usage import is_report, normalise
from compactd.daemon.rpc.request import Request
from compactd.formats.messages.client_messages import other_shape
from compactd.formats.messages.neutral import decode_message
from compactd.formats.messages.shapes import NAMES
from compactd.formats.messages.tools import decode_tools, encode_tool
from compactd.protocol import wire
from compactd.protocol.errors import InvalidParams
from compactd.protocol.messages import NULL, Message, Tool, Usage
from compactd.protocol.settings import GivenReduce, GivenSettings, ReduceLevel
from compactd.session.given_output import GivenOutput
from compactd.session.session import UNSETTABLE_FIELDS, Session
from compactd.storage.settings_files import (
    NAME_CHARS,
    SETTING_NAMES,
    nearest_setting,
    printable_name,
    unknown_names,
)

SECRET_LEFT_OUT = (
    "the user, password, query and fragment in `base_url` were removed: compactd stores no credentials in an "
    "address. Put a key into keys.toml, or into the provider's environment variable"
)
"""The warning of `session/start` and `model/set` about credentials in `base_url`."""

LEVELS: tuple[ReduceLevel, ...] = get_args(ReduceLevel)

_NOTHING: Report = (Usage(), False)
_COUNTS_NOTHING = "{} is not counted: it has no field of a usage report that compactd knows"
_SETTINGS = "compaction."
_ALIKE = 0.7
"""The least `difflib` similarity at which an unknown field counts as a misspelling of a known one."""


def ignored_names(request: Request, params: Struct) -> tuple[str, ...]:
    """Return warnings about unknown fields of a request.

    The warnings are about unknown names in `compaction`, names of settings outside `compaction`, and names
    that look like misspelled params. Other unknown fields give no warning.
    """
    if not request.unknown:
        return ()
    from difflib import get_close_matches

    settings = [name for name in request.unknown if name.startswith(_SETTINGS)]
    warnings = list(unknown_names([name.removeprefix(_SETTINGS) for name in settings], request.name))
    own = params.__struct_encode_fields__
    for name in (name for name in request.unknown if name not in settings):
        near = next(iter(get_close_matches(name[:NAME_CHARS], own, 1, _ALIKE)), None)
        if name in SETTING_NAMES or near is not None:
            meant = f" (perhaps {near} is meant)" if near else ""
            warnings.append(
                f"{request.name}: {printable_name(name)} is not a parameter; it is ignored{meant}"
            )
    return tuple(warnings)


def endpoint_of(base_url: str | None) -> str | None:
    """Return a client's `base_url` without user, password, query and fragment. Return None for None."""
    return None if base_url is None else bare_endpoint(base_url)


def endpoint_warnings(model: str | wire.ModelRef | None) -> tuple[str, ...]:
    """Return warnings about a `base_url` that contains credentials or is not an HTTP URL."""
    base_url = model.base_url if isinstance(model, wire.ModelRef) else None
    if base_url is None:
        return ()
    secret = (SECRET_LEFT_OUT,) if has_secret_place(base_url) else ()
    kind, separator, rest = base_url.strip().partition("://")
    if kind.lower() in ("http", "https") and separator and rest.strip("/"):
        return secret
    return (*secret, f"base_url {printable_name(bare_endpoint(base_url))!r} is not an http or https URL")


def model_warning(found: Lookup, near: Sequence[str], is_given: bool) -> str:
    """Return the warning about a model that is not in the registry.

    `near` contains similar model names. If `is_given`, the client or the settings have set the context
    window, so the warning does not call the window a guess.
    """
    name = printable_name(found.model)
    what = f"{name} is not in the registry of models"
    if "router" in found.how:
        what = f"{name} is not one model but a router, which picks a model for each request"
    window = "" if is_given else f"; its window of {found.context_window:,} tokens is a guess ({found.how})"
    meant = f"; perhaps {' or '.join(near)} is meant" if near else ""
    return f"{what}{window}{meant}"


def folder_warnings(working_dir: str | None) -> tuple[str, ...]:
    """Return a warning if the working directory is not an absolute path."""
    if working_dir is None or PurePath(working_dir).is_absolute():
        return ()
    return (
        f"working_dir {printable_name(working_dir)!r} is not an absolute path, so compactd reads no files "
        f"there, "
        "not even its settings: give an absolute path",
    )


def usage_warnings(new: AppendRequest, params: wire.AppendParams | wire.EndParams) -> tuple[str, ...]:
    """Return warnings about usage reports that have no known field or do not belong to a model's answer."""
    warnings = []
    if new.report is not None:
        if new.report == _NOTHING and not is_report(params.usage):
            warnings.append(_COUNTS_NOTHING.format("usage"))
        if new.read and all(message.role != "assistant" for message, _ in new.read):
            warnings.append(
                "usage: none of these messages is an answer of the model, so the report is counted for the "
                "previous answer"
            )
    for index, (message, _) in enumerate(new.read):
        if message.usage is None:
            continue
        place = f"messages[{index}].usage"
        if message.role != "assistant":
            warnings.append(f"{place} is ignored: only a message of the role `assistant` can have one")
        elif new.own_reports and new.own_reports[index] == _NOTHING and not is_report(message.usage):
            warnings.append(_COUNTS_NOTHING.format(place))
    return tuple(warnings)


def model_of(model: str | wire.ModelRef | None) -> tuple[str | None, str | None]:
    """Return (model name, base URL). Raises `InvalidParams` if the name is empty."""
    if model is None or isinstance(model, str):
        if model is not None and not model.strip():
            raise InvalidParams("`model` is empty: name a model, or leave the field out", "$.model")
        return model, None
    name = model.id if model.provider is None else f"{model.provider}/{model.id}"
    return name, endpoint_of(model.base_url)


def tools_of(raws: tuple[Raw, ...] | None) -> tuple[tuple[Tool, Raw], ...] | None:
    """Return the given tools, each with its JSON in compactd's own format, or None if none were given."""
    if raws is None:
        return None
    tools = [tool for index, raw in enumerate(raws) for tool in decode_tools(raw, f"$.tools[{index}]")]
    return tuple((tool, encode_tool(tool)) for tool in tools)


def decode_append(
    params: wire.AppendParams | wire.EndParams, read: Sequence[tuple[Message, Raw]], tokens: Sequence[int]
) -> AppendRequest:
    """Return what a session appends for this request. `read` has the decoded messages, `tokens` the token
    count of each.
    """
    own: list[Report | None] = [
        None if message.usage is None else normalise(message.usage, f"$.messages[{index}].usage")
        for index, (message, _) in enumerate(read)
    ]
    files = params.files
    return AppendRequest(
        read=read,
        tokens=tokens,
        own_reports=own if any(report is not None for report in own) else (),
        report=None if params.usage == NULL else normalise(params.usage, "$.usage"),
        epoch=params.epoch,
        stop_reason=params.stop_reason if isinstance(params, wire.EndParams) else None,
        files_read=files.read if files else (),
        files_modified=files.modified if files else (),
    )


def given_output(params: wire.ReduceParams) -> GivenOutput:
    """Return the output that `session/reduce` shall reduce. Raises `InvalidParams` if the arguments are no
    object.
    """
    arguments = bytes(params.arguments).lstrip()
    if params.arguments != NULL and arguments[:1] != b"{":
        raise InvalidParams("`arguments` must be an object: the arguments of the tool call", "$.arguments")
    return GivenOutput(
        name=params.name,
        arguments=Raw(b"{}") if params.arguments == NULL else params.arguments,
        text=params.content,
        call_id=params.call_id or None,
        is_error=params.is_error,
        is_compared=params.compare,
    )


def reduce_level(level: str | None, session: Session) -> ReduceLevel:
    """Return the level of a reduction: the given one, otherwise the session's setting. Raises `InvalidParams`
    for an unknown level.
    """
    if level is None:
        return session.resolved.settings.reduce_level
    for known in LEVELS:
        if level == known:
            return known
    raise InvalidParams(
        f"{printable_name(level)!r} is not a level; the levels are {', '.join(LEVELS)}", "$.level"
    )


def error_text(body: Raw, message: str | None) -> str:
    """Return the text of an error body: the content of a JSON string, or any other JSON unchanged. If there
    is no body, return `message`.
    """
    if body == NULL:
        return message or ""
    text = bytes(body).decode("utf-8", "replace")
    return msgspec.json.decode(body, type=str) if text.lstrip()[:1] == '"' else text


def decode_usage(usage: Raw) -> Report | None:
    """Return the usage report in `usage`, or None if `usage` is null."""
    return None if usage == NULL else normalise(usage, "$.usage")


def failed_request(params: wire.ErrorParams) -> FailedRequest:
    """Return the failed model request that `turn/error` reports."""
    error = params.error
    return FailedRequest(
        status=error.status,
        code=None if error.code is None else str(error.code),
        text=error_text(error.body, error.message),
        provider=error.provider,
        report=decode_usage(params.usage),
        epoch=params.epoch,
    )


def prompt_of(params: wire.PromptParams) -> tuple[Message, Raw]:
    """Return the user's message of a prompt, decoded and as JSON.

    Raises `InvalidParams` if both or neither of `text` and `content` are given, if the content is in
    another format than compactd's own, or if it is blank.
    """
    if (params.text is None) == (params.content == NULL):
        raise InvalidParams("give either `text` or `content`", "$.text")
    content = params.content if params.text is None else Raw(msgspec.json.encode(params.text))
    # A person's text may begin like tool output. Name the author, so that it is not taken for tool output.
    is_named = params.text is not None and begins_as_observation(params.text)
    meta = b',"meta":{"author":"user"}' if is_named else b""
    raw = Raw(b'{"role":"user","content":%b%b}' % (bytes(content), meta))
    message = decode_message(raw)
    shape = other_shape(raw, "$.content", message)
    if shape is not None:
        raise InvalidParams(
            f"this block is in {NAMES[shape]}. The blocks of a prompt must be in compactd's own format; see "
            "protocol.md, Values",
            "$.content",
            format=shape,
        )
    if all(is_blank(block) for block in message.content):
        raise InvalidParams("the prompt is empty; give it some text", "$.text")
    return message, raw


def decode_failure(params: wire.ClassifyParams) -> FailedRequest:
    """Return the failed model request that `overflow/classify` shall classify."""
    return FailedRequest(
        status=params.status,
        code=None if params.code is None else str(params.code),
        text=error_text(params.body, params.message),
        provider=params.provider,
        report=decode_usage(params.usage),
        window=params.window,
        stop_reason=params.stop_reason,
    )


def rules_of(profile: str | None) -> Rules | None:
    """Return the rules of a profile, or None if none is named. Raises `InvalidParams` for an unknown
    profile.
    """
    if profile is None:
        return None
    if profile not in PROFILES:
        raise InvalidParams(
            f"{profile!r} is not a profile; the profiles are {', '.join(PROFILES)}", "$.profile"
        )
    return PROFILES[profile].rules


def observation_filter(params: wire.ForgetParams, found: Lookup | None) -> Callable[[Observed], bool]:
    """Return a function that decides whether `models/forget` forgets an observed window.

    `found` is the lookup of the model in `params`, or None if they name no model.
    """
    host = None if params.base_url is None else key("", None, params.base_url)[2]

    def is_meant(one: Observed) -> bool:
        _, model, endpoint = one.key
        if found is not None and model != key(found.model, None, one.base_url)[1]:
            return False
        if params.provider is not None and provider_of(one.provider or "") != provider_of(params.provider):
            return False
        return host is None or endpoint == host

    return is_meant


def decode_settings(given: GivenSettings | None, reduce: GivenReduce | None = None) -> GivenSettings | None:
    """Return `given` with the settings of `reduce`. Raises `InvalidParams`, with the path of the setting, if
    a value is out of range.
    """
    if given is not None:
        validate(given)
    if reduce is None:
        return given
    named = {f"reduce_{name}": value for name, value in msgspec.structs.asdict(reduce).items()}
    validate(GivenSettings(**named), "$.reduce")
    chosen = {name: value for name, value in named.items() if value is not None}
    return msgspec.structs.replace(given or GivenSettings(), **chosen)


def unset_of(names: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of the settings to unset. Raises `InvalidParams` for a name that is not a setting."""
    for index, name in enumerate(names or ()):
        if name not in SETTING_NAMES and name not in UNSETTABLE_FIELDS:
            near = nearest_setting(name)
            meant = f"; perhaps {near} is meant" if near else ""
            raise InvalidParams(f"{printable_name(name)} is not a setting{meant}", f"$.unset[{index}]")
    return tuple(names or ())


def compact_request(params: wire.CompactParams) -> CompactRequest:
    """Return the compaction that the client requests. Raises `InvalidParams` if more than one budget is
    given.
    """
    keep_messages = params.keep_messages if params.keep_messages is not None else params.preserve_count
    budgets = {
        "keep_recent": params.keep_recent,
        "keep_messages": keep_messages,
        "target_tokens": params.target_tokens,
    }
    given = [name for name, value in budgets.items() if value is not None]
    if len(given) > 1:
        raise InvalidParams(f"{', '.join(given)} cannot be combined: give only one of them", f"$.{given[1]}")
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
