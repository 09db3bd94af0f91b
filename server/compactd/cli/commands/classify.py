"""`compactd classify FILE`: whether a provider's error was a context overflow, and what to do about it."""

from __future__ import annotations

import sys
from pathlib import Path

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.complete import providers
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, Stop
from compactd.cli.framework.page import Look, Page, note
from compactd.client import Client
from compactd.core.budget.profiles import PROFILES
from compactd.protocol.wire import ClassifyResult

ABOUT = """\
What a failed model request was: an overflow of the context window, or a limit of
pace, a limit of output, a body too large in bytes, and so on; with the numbers
that the error names, and what to do. Reads the error's body as it came: JSON, a
stream's events, a log line, a web page.
"""

BODY_BYTES = 50_000_000
"""Most of a body. What is larger is no provider's error."""

ENDS_CHARS = 1_000_000
"""Of a longer text, its first and its last so many characters are sent: 12 MB where every one is escaped, far
below the daemon's limit for a frame. No error says what it is further from its ends."""

_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb": "utf-8-sig"}
"""Encodings by the first two bytes; PowerShell's `>` writes UTF-16."""

KINDS = {
    "overflow": "a context overflow: the request is larger than the model's window",
    "output_limit": "no overflow: the output asked for, or the answer, reached the model's cap",
    "rate_limit": "no overflow: a rate limit, too much in too short a time",
    "payload_too_large": "no overflow: the request, or one item of it, is too large in bytes or characters",
    "auth": "no overflow: the key or its permissions were refused",
    "quota": "no overflow: money or a plan's allowance is used up",
    "content_filter": "no overflow: the content was refused",
    "invalid_request": "no overflow: the request is malformed, or names what there is not",
    "server": "no overflow: the provider's own failure",
    "other": "no overflow that the text or the numbers show",
}
FIXES = {
    "compact": "compact: send a shorter conversation",
    "lower_output": "ask for fewer output tokens: the input alone fits",
    "truncate_item": "send that item smaller; a shorter conversation would not help",
    "retry_later": "wait, then send the same request again",
    "none": "none in the conversation: a shorter one would fail in the same way",
}


class Options(Struct, frozen=True, kw_only=True):
    """What was chosen."""

    file: str | None
    status: int | None
    code: str | None
    provider: str | None
    profile: str | None
    window: int | None
    used: int | None


def run(options: Options, page: Page) -> int:
    """Reads, asks the daemon, shows."""
    is_known = options.status is not None or options.code is not None
    if options.file is None and sys.stdin.isatty():
        if not is_known:
            raise Stop(
                "there is no body.", hint="Give a FILE, pipe it in, or name --status.", exit_code=USAGE
            )
        text = ""
    else:
        text = decoded(_read(options.file or "-"))
    if not text.strip() and not is_known and (options.used is None or options.window is None):
        raise Stop(
            "nothing to classify: the body is empty.",
            hint="--status N, or --used N with --window N, tells what is known without one.",
            exit_code=NOTHING_TO_DO,
        )
    params = {
        "body": ends_of(text),
        "status": options.status,
        "code": options.code,
        "provider": options.provider,
        "profile": options.profile,
        "window": options.window,
        "usage": None if options.used is None else {"input_tokens": options.used},
    }
    with Client() as client:
        found = client.ask("overflow/classify", params, ClassifyResult)
    if page.is_json:
        page.json(found)
        return DONE
    show(page, found)
    notes: list[str] = []
    if found.kind == "other" and options.status is None:
        notes.append("--status N, the HTTP status, may tell more")
    if len(text) > 2 * ENDS_CHARS:
        notes.append(f"of {len(text):,} characters the first and the last {ENDS_CHARS:,} were looked at")
    note(notes)
    return DONE


def http_status(text: str) -> int:
    """A status of HTTP; raises `ValueError`."""
    if not text.isdecimal() or not 100 <= int(text) <= 599:
        raise ValueError(f"{text!r} is no HTTP status: 100 to 599 are")
    return int(text)


def decoded(body: bytes) -> str:
    """The text of any bytes: U+FFFD for what is none."""
    return body.decode(_MARKS.get(body[:2], "utf-8"), "replace")


def ends_of(text: str) -> str:
    """`text`, or its beginning and its end where it is very long."""
    if len(text) <= 2 * ENDS_CHARS:
        return text
    return f"{text[:ENDS_CHARS]}\n{text[-ENDS_CHARS:]}"


def show(page: Page, found: ClassifyResult) -> None:
    """What it was, the numbers, the fix, why."""
    look: Look = "bad" if found.overflow else ""
    what = KINDS[found.kind]
    if found.overflow and found.fix == "lower_output":
        what = "a context overflow: input and the output asked for exceed the window together"
    page.row("what", what, look)
    if found.limit is not None:
        page.figure("limit", f"{found.limit:,}", "tokens")
    elif found.overflow:
        page.row("limit", "not told")
    if found.requested is not None:
        page.figure("requested", f"{found.requested:,}", _beside(found.requested, found.limit))
    is_open = found.kind == "other" and found.fix == "none"
    page.row("fix", "not known" if is_open else FIXES[found.fix])
    page.row("evidence", found.evidence)


def _beside(requested: int, limit: int | None) -> str:
    if limit is None:
        return "tokens"
    if requested == limit:
        return "tokens, the limit itself"
    return f"tokens, {abs(requested - limit):,} {'above' if requested > limit else 'below'} the limit"


def _read(name: str) -> bytes:
    """The bytes of a file, or of standard input for `-`. Raises `Stop`."""
    try:
        if name == "-":
            body = sys.stdin.buffer.read(BODY_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                body = file.read(BODY_BYTES + 1)
    except FileNotFoundError as error:
        raise Stop(f"cannot read {name}: there is no such file.", exit_code=USAGE) from error
    except IsADirectoryError as error:
        raise Stop(f"cannot read {name}: it is a folder.", hint="Give a file.", exit_code=USAGE) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is no file name"
        raise Stop(f"cannot read {name}: {why}.", hint="Check its permissions, or copy it.") from error
    if len(body) > BODY_BYTES:
        raise Stop(
            f"{name} is larger than {BODY_BYTES:,} bytes: no provider's error is.",
            hint=f"Cut it to the error itself: head -c {ENDS_CHARS} FILE | compactd classify",
        )
    return body


COMMAND = Command(
    "classify",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument("file", "the error's body; - or none: standard input", required=False, is_file=True),
        Option("--status", "the HTTP status", metavar="N", read=http_status),
        Option("--code", "the error's code, where it came beside the body"),
        Option("--provider", "who answered", completed=providers),
        Option("--profile", "whose rule for an error without a body holds", choices=sorted(PROFILES)),
        Option("--window", "the model's window in tokens", read=sizes.tokens, metavar="N"),
        Option("--used", "tokens of the request, as last reported", read=sizes.tokens, metavar="N"),
    ),
    examples=(
        ("compactd classify error.json --status 400", "what it was, and what to do"),
        ("curl ... | compactd classify --provider openai", "as it comes from a provider"),
    ),
)
