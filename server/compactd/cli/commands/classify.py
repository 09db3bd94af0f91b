"""`compactd classify FILE`: says whether a provider's error was a context overflow, and what to
do about it.
"""

from __future__ import annotations

import sys

from msgspec import Struct

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Command, Option
from compactd.cli.framework.complete import providers
from compactd.cli.framework.exit_codes import DONE, NOTHING_TO_DO, USAGE, CommandError
from compactd.cli.framework.options import WINDOW
from compactd.cli.framework.page import Look, Page, print_notes
from compactd.cli.framework.read_input import read_input
from compactd.client import Client
from compactd.core.budget.profiles import PROFILES
from compactd.protocol.wire import ClassifyResult

ABOUT = """\
Says why a model request failed: the context window overflowed, a rate limit or an
output limit was reached, the body was too large in bytes, and so on. Also shows the
numbers that the error names, and what to do. Reads the error's body as it came: JSON,
the events of a stream, a log line, a web page.
"""

BODY_BYTES = 50_000_000
"""The largest body in bytes. Anything larger is not a provider's error."""

MAX_END_CHARS = 1_000_000
"""How many characters of a long text are sent from its beginning, and how many from its end: the words that
identify an error are there. Both together have at most 12 MB, even if JSON escapes every character. That is
far below the daemon's limit for a frame.
"""

_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb": "utf-8-sig"}
"""The first two bytes of a text -> its encoding. PowerShell's `>` writes UTF-16."""

KINDS = {
    "overflow": "a context overflow: the request is larger than the model's window",
    "output_limit": "no overflow: the requested output or the answer reached the model's output limit",
    "rate_limit": "no overflow: a rate limit, too many requests or tokens in a short time",
    "payload_too_large": "no overflow: the request, or one item of it, is too large in bytes or characters",
    "auth": "no overflow: the key or its permissions were refused",
    "quota": "no overflow: the account's balance or quota is used up",
    "content_filter": "no overflow: the content was refused",
    "invalid_request": "no overflow: the request is malformed, or names something that does not exist",
    "server": "no overflow: the provider itself failed",
    "other": "unknown: neither the text nor the numbers show an overflow",
}
FIXES = {
    "compact": "compact: send a shorter conversation",
    "lower_output": "ask for fewer output tokens: the input alone fits",
    "truncate_item": "make that item smaller; a shorter conversation would not help",
    "retry_later": "wait, then send the same request again",
    "none": "the fault is not in the conversation: a shorter one would fail in the same way",
}


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: str | None
    status: int | None
    code: str | None
    provider: str | None
    profile: str | None
    window: int | None
    used: int | None


def run(options: Options, page: Page) -> int:
    """Read the error, ask the daemon what it is, and print the answer."""
    is_known = options.status is not None or options.code is not None
    if options.file is None and sys.stdin.isatty():
        if not is_known:
            raise CommandError(
                "no error text was given.",
                hint="Name a FILE, pipe the error in, or use --status.",
                exit_code=USAGE,
            )
        text = ""
    else:
        text = decode(_read(options.file or "-"))
    if not text.strip() and not is_known and (options.used is None or options.window is None):
        raise CommandError(
            f"{options.file or '-'} is empty: there is nothing to classify.",
            hint="Without a body, use --status N, or --used N with --window N.",
        )
    with Client() as client:
        found = client.overflow_classify(
            body=keep_ends(text),
            status=options.status,
            code=options.code,
            provider=options.provider,
            profile=options.profile,
            window=options.window,
            usage=None if options.used is None else {"input_tokens": options.used},
        )
    code = NOTHING_TO_DO if found.kind == "other" else DONE
    if page.is_json:
        page.json(found)
        return code
    show(page, found)
    notes: list[str] = []
    if found.kind == "other" and options.status is None:
        notes.append("with --status N (the HTTP status) the answer may be more exact")
    if len(text) > 2 * MAX_END_CHARS:
        notes.append(f"of {len(text):,} characters, only the first and the last {MAX_END_CHARS:,} were read")
    print_notes(notes)
    return code


def http_status(text: str) -> int:
    """Parse an HTTP status. Raise `ValueError` if `text` is not a number from 100 to 599."""
    if not text.isdecimal() or not 100 <= int(text) <= 599:
        raise ValueError(f"{text!r} is not an HTTP status; it must be between 100 and 599")
    return int(text)


def decode(body: bytes) -> str:
    """Decode any bytes as text. Bytes that cannot be decoded become U+FFFD."""
    return body.decode(_MARKS.get(body[:2], "utf-8"), "replace")


def keep_ends(text: str) -> str:
    """Return `text`; if it is very long, only its beginning and its end."""
    if len(text) <= 2 * MAX_END_CHARS:
        return text
    return f"{text[:MAX_END_CHARS]}\n{text[-MAX_END_CHARS:]}"


def show(page: Page, found: ClassifyResult) -> None:
    """Print what the error was, its numbers, the fix and the evidence."""
    look: Look = "bad" if found.overflow else ""
    what = KINDS[found.kind]
    if found.overflow and found.fix == "lower_output":
        what = "a context overflow: the input and the requested output together exceed the window"
    page.row("what", what, look)
    if found.limit is not None:
        page.figure("limit", f"{found.limit:,}", "tokens")
    elif found.overflow:
        page.row("limit", "not named in the error")
    if found.requested is not None:
        page.figure("requested", f"{found.requested:,}", _distance_text(found.requested, found.limit))
    is_open = found.kind == "other" and found.fix == "none"
    page.row("fix", "not known" if is_open else FIXES[found.fix])
    page.row("evidence", found.evidence)


def _distance_text(requested: int, limit: int | None) -> str:
    if limit is None:
        return "tokens"
    if requested == limit:
        return "tokens, the limit itself"
    return f"tokens, {abs(requested - limit):,} {'above' if requested > limit else 'below'} the limit"


def _read(name: str) -> bytes:
    """Return the bytes of the file `name`, or of standard input for `-`. Raise `CommandError` if it cannot be
    read.
    """
    body = read_input(name, BODY_BYTES)
    if len(body) > BODY_BYTES:
        raise CommandError(
            f"{name} is larger than {BODY_BYTES:,} bytes, so it is not a provider's error.",
            hint=f"Give only the error itself: head -c {MAX_END_CHARS} FILE | compactd classify",
        )
    return body


COMMAND = Command(
    "classify",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "file", "the error's body; without FILE, or with -, standard input", required=False, is_file=True
        ),
        Option("--status", "the HTTP status", metavar="N", read=http_status),
        Option("--code", "the error's code, if it is not in the body"),
        Option("--provider", "the provider that answered", completed=providers),
        Option(
            "--profile", "the profile whose rule for errors without a body is used", choices=sorted(PROFILES)
        ),
        WINDOW,
        Option("--used", "the last reported size of the request in tokens", read=sizes.tokens, metavar="N"),
    ),
    examples=(
        ("compactd classify error.json --status 400", "say what the error was and what to do"),
        ("curl ... | compactd classify --provider openai", "read an answer directly from a provider"),
    ),
)
