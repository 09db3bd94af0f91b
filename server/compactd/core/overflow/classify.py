"""Classify a failed model request: whether it was a context overflow, what else it was, and what fixes it.

The text of the error is taken apart first (`unwrap`). A status of 402 or 429 rules out an overflow. Otherwise
the evidence is, in this order: the words, the error codes, the class names of SDK exceptions, the token
usage, and last the status. The rules come from errors of some forty providers (2026-11); see docs/truth.md.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.overflow.codes import EXACT_CODES, REFUSED, VAGUE, find_status, without_statuses
from compactd.core.overflow.meaning import UNSERVED, FailureKind, Meaning, read_meaning
from compactd.core.overflow.number_roles import MIN_ROLE_TOKENS
from compactd.core.overflow.numbers import Figures
from compactd.core.overflow.provider_sentence import is_stated_by_provider
from compactd.core.overflow.quotation import is_about_errors, without_quotations
from compactd.core.overflow.unwrap import Unwrapped, unwrap

__all__ = ["FailureKind", "FailureReport", "Fix", "Verdict", "classify"]

Fix = Literal["compact", "lower_output", "truncate_item", "retry_later", "none"]

FULL = 0.99
"""An answer that was cut for length counts as an overflow if at least this share of the window is used: then
the window cut the answer, not the output cap (docs/dev/behaviour.md, "Overflow")."""

BODILESS = frozenset({"cerebras", "mistral"})
"""Providers that answer an overflow with status 400 or 413 and no body (overflow lists of go agent and pi,
read 2026-11)."""

FIXES: dict[FailureKind, Fix] = {
    "overflow": "compact",
    "output_limit": "lower_output",
    "rate_limit": "retry_later",
    "payload_too_large": "truncate_item",
    "server": "retry_later",
}
"""What fixes each kind of failure. A kind that is not listed has the fix `none`."""

EMPTY = (
    r"(?i)[\s\"'.\-:()]*(?:(?:api|http|error|status|code|response|request|failed|bad|with|no|body|empty"
    r"|null|none|400|413|statuscode|unexpected|content|too|entity|payload|large|undefined)\b[\s\"'.\-:()]*){0,14}"
)
"""Matches a whole text that says no more than its status: `400 status code (no body)`."""
WRAPPED = r"(?<=[\w,;(])\n[ \t]{0,12}(?=[a-z(])"
"""Matches a line break that a terminal inserted into a sentence."""
LEADING = re.compile(r"^\W{0,3}[45]\d\d\b\W{0,3}")
"""Matches a status at the beginning of a message."""
NAMES = r"(?:[`'\"][\w.-]{1,40}[`'\"](?:, (?:or |and )?|(?= at | or | and |[.)]|$)(?: or | and )?)){5,}"
"""Matches a list of at least five quoted names, as in `expected one of …`."""
CLASS_NAME = re.compile(r"\b(?:\w{1,40}\.){0,3}[A-Z]\w{2,60}(?:Error|Exception|Fault)\b")
PROSE_CHARS = 4000
"""How many characters outside of structured data are read for their meaning."""
LOG_MARKS = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ])?\b\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:\d\d)?"
    r"|(?<![\w./\\-])[\w./\\-]{1,120}:\w{1,60}:\d{1,6}\b|(?<![\w./\\-])[\w./\\-]{0,120}\.[a-z]{1,5}:\d{1,6}\b"
    r"|=\d{9,20}\b|\btruncated = 0\b|\btask (?:id = )?\d{1,9}\b"
)
"""Matches what a log or a stack trace prints next to an error and what says nothing about it: a time, a place
in a source file, a long id, fields of llama.cpp's server (tools/server, seen 2026-11)."""
MEASURED = "a cap in bytes or characters"
"""The reason given for a message that says that something is too large in bytes or characters."""
LENGTHY = "the error's code: a length"
"""The reason given for an overflow code that does not name the window or tokens. The limit that such a code
is about may be in characters (`prompt_too_long`)."""
MAX_FIGURE = 100_000_000
"""The size, in tokens, from which a number in a field of the body is taken for a time or an id."""
REFUSING = (200, 400, 413, 422, 500)
"""The statuses of failures whose text says nothing, but which usage shows to be overflows (seen 2026-11)."""
CUT = ("length", "maxtokens", "maxoutputtokens", "incomplete", "tokenlimit")
"""Parts of stop reasons which mean that an answer was cut for length. Underscores are left out."""


class FailureReport(Struct, frozen=True, kw_only=True):
    """A failed request, or an answer that may have been cut by the window."""

    status: int | None = None
    """The HTTP status; 200 for an error within a stream."""
    code: str | None = None
    """The machine code of the error, if the caller has it apart from the text."""
    text: str = ""
    """The body or the error message, as received."""
    provider: str | None = None
    """The provider's name, in any spelling."""
    used: int | None = None
    """Tokens of the request: input + cache read + cache write as the provider reported them, or the
    session's own count. None if unknown."""
    output: int | None = None
    """Tokens of the answer, as the provider reported them."""
    reasoning_apart: bool = False
    """Whether the provider counts reasoning separately from `output`. If it does, an output of 0 does not
    mean an empty answer."""
    window: int | None = None
    """The model's window in tokens, if known."""
    stop_reason: str | None = None
    """Why the answer ended, in the provider's words."""
    bodiless_is_overflow: bool = False
    """Whether to treat a 400 or 413 without a body as an overflow (klaude's rule)."""


class Verdict(Struct, frozen=True, kw_only=True):
    """The class of a failure, the numbers that its text names, and what fixes it."""

    overflow: bool
    """Whether the prompt, or prompt and output together, exceed the window. Also true if lowering the
    output is enough (`fix` is then `lower_output`)."""
    kind: FailureKind
    limit: int | None = None
    """The limit in tokens, at least 64. None if the text names no limit in tokens."""
    requested: int | None = None
    """Tokens of everything that was compared with the limit. The true number may be higher if the text
    says "at least"."""
    input: int | None = None
    """The prompt's part of `requested`. None if the text does not say it."""
    fix: Fix = "none"
    """What the caller should do."""
    evidence: str = ""
    """A short phrase for people that says which evidence decided. It never quotes the text."""
    teaches: bool = False
    """Whether `limit` is the window or prompt limit of the model that answered. If so, the session may use
    it as the model's window from now on."""
    is_own: bool = False
    """Whether the provider itself names `limit`, so that all other sessions may use it too. True only if
    `teaches` is true."""


def classify(failure: FailureReport) -> Verdict:
    """Classify one failure. Never raises. O(characters), for at most 11,000 characters of the text.

    `teaches` is false for a failure of the server itself (5xx), because its text may be about anything that
    passed through the server.
    """
    verdict = _classify(failure)
    if not verdict.teaches:
        return verdict
    status = _status(failure.text, unwrap(failure.text)) if failure.status is None else failure.status
    if status is not None and status >= 500:
        return replace(verdict, teaches=False)
    own = verdict.limit is not None and is_stated_by_provider(
        failure.text, status, verdict.limit, verdict.requested
    )
    return replace(verdict, is_own=own)


def _classify(failure: FailureReport) -> Verdict:
    """Return the verdict on one failure, which `classify` completes: `teaches` does not yet take the status
    into account, and `is_own` is always false."""
    text = failure.text
    known = (failure.code,) if failure.code else ()
    if not text.strip():
        return _verdict_without_words(failure, failure.status, code_verdict=_by_codes(known))
    body = unwrap(text)
    status = failure.status if failure.status is not None else _status(text, body)
    embeds = "embed" in (failure.provider or "").lower() or "rerank" in (failure.provider or "").lower()

    said = _first_meaning(body, embeds=embeds)
    reported = bool(failure.code) or (failure.status is not None and failure.status >= 400)
    if not reported and said.kind in (None, "overflow") and is_about_errors(body):
        return _verdict_without_words(failure, failure.status, code_verdict=_by_codes(known))
    if said.needs_refusal and (status is None or status < 400) and not failure.code:
        said = Meaning(kind=None)
    if status == 429 and said.kind not in ("quota", "rate_limit"):
        coded = _by_codes(known + body.codes)
        if coded is not None and coded.kind == "quota":
            return _verdict(failure, coded)
        said = Meaning(kind="rate_limit", why="status 429", figures=Figures())
    if status == 402 and said.kind != "quota":
        said = Meaning(kind="quota", why="status 402")
    if said.kind == "quota" and _is_google(failure, body) and "credit" not in text:
        said = Meaning(kind="rate_limit", why="Google's quota: a pace", figures=said.figures)
    if said.kind is not None and not (said.kind == "invalid_request" and said.curable):
        if said.kind == "auth" and failure.code is not None:
            coded = _by_codes(known)
            if coded is not None and coded.kind == "quota":
                return _verdict(failure, coded)
        coded = _by_codes(body.codes) if said.kind in ("server", "payload_too_large", "auth") else None
        if said.kind == "payload_too_large" and 413 in (status, *body.statuses):
            coded = None
        if said.why == MEASURED and coded is not None and coded.why == LENGTHY:
            coded = None
        if coded is not None and coded.kind in ("overflow", "rate_limit") and said.kind != "auth":
            return _verdict(failure, coded)
        return _verdict(failure, said)

    codes = ((failure.code,) if failure.code else ()) + body.codes + tuple(_classes(body.prose))
    coded = _by_codes(codes)
    if coded is not None and (said.kind is None or coded.kind == "overflow"):
        if coded.kind == "overflow":
            coded = Meaning(
                kind="overflow",
                why=coded.why,
                figures=_figures_of(body) or _unitless_figures(body),
                clear=True,
            )
            if embeds:
                coded = Meaning(kind="invalid_request", why="an embedder's input limit")
        return _verdict(failure, coded)
    if coded is not None and coded.kind == "auth" and 403 in (status, *body.statuses):
        return _verdict(failure, coded)
    named = _figures_of(body) if body.figures else None
    if named is not None and named.by_window and (named.requested or 0) > (named.limit or 0):
        return _verdict(failure, Meaning(kind="overflow", why="the figures of the body", figures=named))
    if said.kind is not None:
        keyed = status == 401 and said.why != UNSERVED
        return _verdict(failure, Meaning(kind="auth", why="status 401") if keyed else said)
    silent = _verdict_without_words(failure, status, code_verdict=None)
    if silent.kind == "other" and any(re.match(REFUSED, code) is not None for code in body.codes):
        return _verdict(failure, Meaning(kind="invalid_request", why="the error's type"))
    return silent


def _first_meaning(body: Unwrapped, *, embeds: bool) -> Meaning:
    """Return what the messages of the body mean, with figures from the body's fields. The messages are
    read from the innermost out, then the prose around them. The first one whose words decide the kind is
    used."""
    weak: Meaning | None = None
    for message in body.messages:
        found = _meaning(LEADING.sub("", " ".join(message.split())), embeds=embeds)
        if found.kind is None:
            continue
        if found.kind in ("invalid_request", "server") and found.curable:
            weak = weak or found
            continue
        return _add_body_figures(found, body)
    prose = LOG_MARKS.sub(" ", body.prose[:PROSE_CHARS])
    prose = without_statuses(re.sub(WRAPPED, " ", prose) if "\n" in prose else prose)
    if any(name in prose for name in ("Error", "Exception", "Fault")):
        prose = CLASS_NAME.sub(" . ", prose)
    if prose.strip():
        found = _meaning(prose, embeds=embeds)
        if found.kind is not None and (weak is None or found.clear):
            return _add_body_figures(found, body)
    return weak or Meaning(kind=None)


def _meaning(message: str, *, embeds: bool) -> Meaning:
    """Return the meaning of a message without its quotations. If the message only wraps a quotation,
    return the meaning of the whole message."""
    if "`, " in message or "', " in message or '", ' in message:
        message = re.sub(NAMES, " ", message)
    own = without_quotations(message)
    return read_meaning(message if own is None else own, embeds=embeds)


def _add_body_figures(found: Meaning, body: Unwrapped) -> Meaning:
    """Return `found`, the meaning of a message. If the message reports an overflow and names no limit, its
    figures come from the body's numeric fields (llama.cpp's `n_prompt_tokens`, `n_ctx`)."""
    if found.kind != "overflow" or found.figures.limit is not None or not body.figures:
        return found
    named = _figures_of(body)
    if named is None:
        return found
    return Meaning(kind=found.kind, why=found.why, figures=named, clear=found.clear)


def _figures_of(body: Unwrapped) -> Figures | None:
    """Return the figures in the body's numeric fields, judged by the fields' names; None unless they give
    both a limit and what was requested."""
    sentence = " ; ".join(
        f"{name} is {value}" for name, value in body.figures if MIN_ROLE_TOKENS <= value < MAX_FIGURE
    )
    found = read_meaning(sentence + " ; prompt too long").figures if sentence else Figures()
    return found if found.limit is not None and found.requested is not None else None


def _unitless_figures(body: Unwrapped) -> Figures:
    """Return the figures of the first message that has any. Numbers without a unit count as tokens, because
    the error's code already names an overflow."""
    for message in body.messages:
        found = read_meaning(f"{message} ; too many prompt tokens").figures
        if found.limit is not None or found.requested is not None:
            return found
    return Figures()


def _by_codes(codes: tuple[str, ...]) -> Meaning | None:
    """Return the meaning of the first of `codes` that has one; None if none has."""
    for code in codes:
        low = code.strip().lower()
        if not low or low in VAGUE or low.isdecimal():
            continue
        exact = EXACT_CODES.get(low)
        if exact is not None:
            return Meaning(kind=exact, why="the error's code")
        found = read_meaning(code[:120])
        if found.kind is not None and not (found.kind == "invalid_request" and low.startswith("invalid")):
            windowed = found.why.startswith("the context") or "token" in low
            return Meaning(
                kind=found.kind,
                why=LENGTHY if found.kind == "overflow" and not windowed else "the error's code",
            )
    return None


def _verdict(failure: FailureReport, found: Meaning) -> Verdict:
    """Return the verdict that follows from a meaning."""
    kind = found.kind or "other"
    stated = found.figures if kind != "quota" else Figures()
    limit = stated.limit if stated.limit is not None and stated.limit >= MIN_ROLE_TOKENS else None
    if limit is not None and str(limit) == failure.code:
        limit = None
    fix: Fix = FIXES.get(kind, "none")
    requested = stated.requested
    if kind == "overflow":
        fix = _choose_fix(failure, stated)
    elif kind == "rate_limit" and limit is not None and requested is not None and requested > limit:
        fix = "compact"
    elif kind == "output_limit":
        requested = stated.output if stated.output is not None else requested
        requested = requested if requested is not None and limit is not None and requested > limit else None
    return Verdict(
        overflow=kind == "overflow",
        kind=kind,
        limit=limit,
        requested=requested,
        input=stated.input if kind == "overflow" else None,
        fix=fix,
        evidence=found.why,
        teaches=kind == "overflow"
        and limit is not None
        and found.curable
        and (requested is None or requested > limit),
    )


def _choose_fix(failure: FailureReport, stated: Figures) -> Fix:
    """Return `lower_output` if the request fits with fewer output tokens alone, otherwise `compact`."""
    if stated.limit is None or stated.output is None or stated.input is None or stated.output == 0:
        return "compact"
    if stated.input >= stated.limit:
        return "compact"
    if stated.lower_bound and stated.requested == stated.limit + 1:
        fits = failure.used is not None and failure.used < stated.limit
        return "lower_output" if fits else "compact"
    return "lower_output"


def _verdict_without_words(
    failure: FailureReport, status: int | None, *, code_verdict: Meaning | None
) -> Verdict:
    """Return the verdict for a failure whose words do not decide. The evidence is, in this order: the
    code, the stop reason, the usage, what is known of the provider, and the status."""
    if code_verdict is not None and code_verdict.kind is not None:
        return _verdict(failure, code_verdict)
    stop = read_meaning(failure.stop_reason) if failure.stop_reason else None
    if stop is not None and stop.kind == "overflow":
        return Verdict(
            overflow=True, kind="overflow", limit=failure.window, fix="compact", evidence="the stop reason"
        )
    bodiless = (
        status in (400, 413) and len(failure.text) < 200 and re.fullmatch(EMPTY, failure.text) is not None
    )
    if bodiless and failure.bodiless_is_overflow:
        return Verdict(overflow=True, kind="overflow", fix="compact", evidence="a refusal without a body")
    measured = failure.used is not None and failure.window is not None
    if measured and (status is None or status in REFUSING) and _is_window_full(failure):
        return Verdict(
            overflow=True, kind="overflow", limit=failure.window, fix="compact", evidence="usage and window"
        )
    if bodiless and not measured and (failure.provider or "").lower() in BODILESS:
        return Verdict(overflow=True, kind="overflow", fix="compact", evidence="a refusal without a body")
    kind = _by_status(status)
    limit = failure.window if measured and kind == "other" else None
    return Verdict(
        overflow=False, kind=kind, limit=limit, fix=FIXES.get(kind, "none"), evidence=_evidence(status)
    )


def _evidence(status: int | None) -> str:
    """Return the phrase for `Verdict.evidence` if only the status could decide."""
    return "nothing indicates an overflow" if status is None or status < 400 else f"status {status} alone"


def _is_window_full(failure: FailureReport) -> bool:
    """Return whether the usage shows that the window is full: the request is larger than the window, or the
    answer was cut for length and request and answer together fill at least `FULL` of the window."""
    used, window = failure.used or 0, failure.window or 0
    if window <= 0:
        return False
    if used > window:
        return True
    stop = (failure.stop_reason or "").lower().replace("_", "")
    return any(word in stop for word in CUT) and used + (failure.output or 0) >= FULL * window


def _by_status(status: int | None) -> FailureKind:
    """Return the kind of failure that a status alone means."""
    if status is None or status < 400:
        return "other"
    if status in (401, 403):
        return "auth"
    known: dict[int, FailureKind] = {402: "quota", 413: "payload_too_large", 429: "rate_limit", 408: "server"}
    return known.get(status, "server" if status >= 500 else "invalid_request")


def _status(text: str, body: Unwrapped) -> int | None:
    """Return the HTTP status that a text names: one in its first 400 characters, otherwise the first in a
    field of its body. None if it names none."""
    found = find_status(text[:400], 0)
    if found is not None:
        return int(next(group for group in found.groups() if group))
    return body.statuses[0] if body.statuses else None


def _classes(prose: str) -> list[str]:
    """Return the names of exception classes in `prose`, the last first. The last name is closest to the
    message."""
    return [name.rsplit(".", 1)[-1] for name in CLASS_NAME.findall(prose[:2000])][::-1]


def _is_google(failure: FailureReport, body: Unwrapped) -> bool:
    """Return whether the failure comes from Google, judged by the provider's name and the text."""
    named = (failure.provider or "").lower()
    if any(name in named for name in ("google", "gemini", "vertex")) or "RESOURCE_EXHAUSTED" in body.codes:
        return True
    said = " ".join(body.messages) + body.prose[:2000]
    return "generate_content" in said or "quota metric" in said or "generativelanguage" in said
