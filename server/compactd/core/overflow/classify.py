"""Whether a failed model request was a context overflow, what else it was, and what cures it.

Order of evidence: the text is unwrapped; a 402 or 429 vetoes; then words, codes, the SDK's class names,
usage, and last the status. Rules: research of 2026-11 over errors of some forty providers, see
docs/truth.md.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from compactd.core.overflow.bare import bare, unserviced
from compactd.core.overflow.codes import EXACT_CODES, REFUSED, VAGUE
from compactd.core.overflow.logs import spoken
from compactd.core.overflow.meaning import UNSERVED, Kind, Meaning, meaning
from compactd.core.overflow.number_roles import SMALLEST
from compactd.core.overflow.numbers import Figures
from compactd.core.overflow.own_sentence import is_own
from compactd.core.overflow.quotation import quotes, unspoken
from compactd.core.overflow.status import numbered, unnumbered
from compactd.core.overflow.unwrap import Unwrapped, unwrap

__all__ = ["Failure", "Fix", "Kind", "Verdict", "classify"]

Fix = Literal["compact", "lower_output", "truncate_item", "retry_later", "none"]

FULL = 0.99
"""Share of the window from which on an answer cut for length was cut by it (docs/dev/behaviour.md,
"Overflow")."""

BODILESS = frozenset({"cerebras", "mistral"})
"""Providers that answer an overflow with 400 or 413 and nothing else (go agent's and pi's overflow lists,
read 2026-11)."""

FIXES: dict[Kind, Fix] = {
    "overflow": "compact",
    "output_limit": "lower_output",
    "rate_limit": "retry_later",
    "payload_too_large": "truncate_item",
    "server": "retry_later",
}

EMPTY = (
    r"(?i)[\s\"'.\-:()]*(?:(?:api|http|error|status|code|response|request|failed|bad|with|no|body|empty"
    r"|null|none|400|413|statuscode|unexpected|content|too|entity|payload|large|undefined)\b[\s\"'.\-:()]*){0,14}"
)
WRAPPED = r"(?<=[\w,;(])\n[ \t]{0,12}(?=[a-z(])"
"""Where a terminal broke a line within a sentence."""
LEADING = re.compile(r"^\W{0,3}[45]\d\d\b\W{0,3}")
NAMES = r"(?:[`'\"][\w.-]{1,40}[`'\"](?:, (?:or |and )?|(?= at | or | and |[.)]|$)(?: or | and )?)){5,}"
"""A list of the names that would have been right: `expected one of …`."""
CLASS_NAME = re.compile(r"\b(?:\w{1,40}\.){0,3}[A-Z]\w{2,60}(?:Error|Exception|Fault)\b")


ABORTED = (
    r"(?m)^(?:\w{2,10}:\s)?(?:terminate called after|libc\+\+abi: terminating"
    r"|zsh: (?:abort|killed|segmentation)"
    r"|Aborted\b|Abort trap|Segmentation fault|Killed\b|[A-Z]{3,8}_ASSERT\b)"
)
"""A line with which a runtime ends that ran out of memory, whatever its log holds before."""
LAST = 1200
"""Characters in which it ends."""
MEASURED = "a cap in bytes or characters"
"""Why a message is of something too large whose unit it tells."""
LENGTHY = "the error's code: a length"
"""Why a code is of an overflow that names no window: `prompt_too_long` may be one in characters."""
LARGEST = 100_000_000
"""Tokens. A larger number of a body's field is a time or an id."""
REFUSING = (200, 400, 413, 422, 500)
"""Statuses an overflow without words came with (research of 2026-11)."""
CUT = ("length", "maxtokens", "maxoutputtokens", "incomplete", "tokenlimit")
"""Parts of the stop reasons of an answer that was cut, without underscores."""


class Failure(Struct, frozen=True, kw_only=True):
    """A failed request, or an answer that may have been cut by the window."""

    status: int | None = None
    """HTTP's. 200 for an error within a stream."""
    code: str | None = None
    text: str = ""
    """Body or message, as received."""
    provider: str | None = None
    used: int | None = None
    """Tokens of the request as far as known: the report's input + cache read + cache write, or the session's
    own count. None where nobody knows."""
    output: int | None = None
    """Tokens of the answer, as reported."""
    reasoning_apart: bool = False
    """The report counts reasoning beside `output`, so that 0 there is no empty answer."""
    window: int | None = None
    """Tokens of the model, as known."""
    stop_reason: str | None = None
    bodiless_is_overflow: bool = False
    """An empty 400 or 413 is an overflow (klaude's rule)."""


class Verdict(Struct, frozen=True, kw_only=True):
    """What the failure was."""

    overflow: bool
    """The prompt, or prompt and output together, exceed the window; also where `fix` is `lower_output`."""
    kind: Kind
    limit: int | None = None
    """Tokens, at least 64. None where the text states none in tokens."""
    requested: int | None = None
    """Tokens of all that was compared with the limit; a lower bound as stated."""
    input: int | None = None
    """Of `requested`, the prompt's part, where the text tells it apart."""
    fix: Fix = "none"
    evidence: str = ""
    """What decided, for people. Never quotes the text."""
    teaches: bool = False
    """`limit` is the window or prompt limit of the model that answers, and the session may learn it."""
    is_own: bool = False
    """The provider itself states `limit`: all other sessions may learn it too. Only with `teaches`."""


def classify(failure: Failure) -> Verdict:
    """The verdict on one failure. Never raises. Cost: O(characters), at most 11 000 of the text.

    A failure of the server itself (5xx) teaches nothing: its text is about anything that passed through it.
    """
    verdict = _classified(failure)
    if not verdict.teaches:
        return verdict
    status = _status(failure.text, unwrap(failure.text)) if failure.status is None else failure.status
    if status is not None and status >= 500:
        return replace(verdict, teaches=False)
    own = verdict.limit is not None and is_own(failure.text, status, verdict.limit, verdict.requested)
    return replace(verdict, is_own=own)


def _classified(failure: Failure) -> Verdict:
    text = failure.text
    known = (failure.code,) if failure.code else ()
    if not text.strip():
        return _silent(
            failure, failure.status, code_verdict=_by_codes(failure, (failure.code,) if failure.code else ())
        )
    answered = failure.status is not None and failure.status >= 400
    text = unserviced(text) if answered else text
    told, text = text, spoken(text)
    body = unwrap(text)
    status = failure.status if failure.status is not None else _status(told, body)
    embeds = "embed" in (failure.provider or "").lower() or "rerank" in (failure.provider or "").lower()

    quoted = quotes(text, body, answered=answered, coded=bool(failure.code))
    said = _said(body, embeds=embeds)
    if quoted and (said.kind in (None, "overflow") or quoted == "surely"):
        if said.kind == "server" and re.search(ABORTED, text[-LAST:]) is not None:
            return _verdict(failure, said)
        return _silent(failure, failure.status, code_verdict=_by_codes(failure, known))
    if said.needs_refusal and (status is None or status < 400) and not failure.code:
        said = Meaning(kind=None)
    if status == 429 and said.kind not in ("quota", "rate_limit"):
        coded = _by_codes(failure, known + body.codes)
        if coded is not None and coded.kind == "quota":
            return _verdict(failure, coded)
        said = Meaning(kind="rate_limit", why="status 429", figures=Figures())
    if status == 402 and said.kind != "quota":
        said = Meaning(kind="quota", why="status 402")
    if said.kind == "quota" and _is_google(failure, body) and "credit" not in text:
        said = Meaning(kind="rate_limit", why="Google's quota: a pace", figures=said.figures)
    if said.kind is not None and not (said.kind == "invalid_request" and said.curable):
        if said.kind == "auth" and failure.code is not None:
            coded = _by_codes(failure, known)
            if coded is not None and coded.kind == "quota":
                return _verdict(failure, coded)
        coded = (
            _by_codes(failure, body.codes) if said.kind in ("server", "payload_too_large", "auth") else None
        )
        if said.kind == "payload_too_large" and 413 in (status, *body.statuses):
            coded = None
        if said.why == MEASURED and coded is not None and coded.why == LENGTHY:
            coded = None
        if coded is not None and coded.kind in ("overflow", "rate_limit") and said.kind != "auth":
            return _verdict(failure, coded)
        return _verdict(failure, said)

    codes = ((failure.code,) if failure.code else ()) + body.codes + tuple(_classes(body.prose))
    coded = _by_codes(failure, codes)
    if coded is not None and (said.kind is None or coded.kind == "overflow"):
        if coded.kind == "overflow":
            coded = Meaning(
                kind="overflow", why=coded.why, figures=_figures_of(body) or _compared(body), clear=True
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
    silent = _silent(failure, status, code_verdict=None)
    if silent.kind == "other" and any(re.match(REFUSED, code) is not None for code in body.codes):
        return _verdict(failure, Meaning(kind="invalid_request", why="the error's type"))
    return silent


def _said(body: Unwrapped, *, embeds: bool) -> Meaning:
    """The first message, from the inside out, whose words decide; with figures that the body names."""
    weak: Meaning | None = None
    for message in body.messages:
        found = _meaning(LEADING.sub("", " ".join(message.split())), embeds=embeds)
        if found.kind is None:
            continue
        if found.kind in ("invalid_request", "server") and found.curable:
            weak = weak or found
            continue
        return _completed(found, body)
    prose = bare(body.prose)
    prose = unnumbered(re.sub(WRAPPED, " ", prose) if "\n" in prose else prose)
    if any(name in prose for name in ("Error", "Exception", "Fault")):
        prose = CLASS_NAME.sub(" . ", prose)
    if prose.strip():
        found = _meaning(prose, embeds=embeds)
        if found.kind is not None and (weak is None or found.clear):
            return _completed(found, body)
    return weak or Meaning(kind=None)


def _meaning(message: str, *, embeds: bool) -> Meaning:
    """What a message says for itself; where it only wraps a quotation, what that says."""
    if "`, " in message or "', " in message or '", ' in message:
        message = re.sub(NAMES, " ", message)
    own = unspoken(message)
    return meaning(message if own is None else own, embeds=embeds)


def _completed(found: Meaning, body: Unwrapped) -> Meaning:
    """`found` with the figures of the body's own fields (llama.cpp's `n_prompt_tokens`, `n_ctx`), where it
    has none."""
    if found.kind != "overflow" or found.figures.limit is not None or not body.figures:
        return found
    named = _figures_of(body)
    if named is None:
        return found
    return Meaning(kind=found.kind, why=found.why, figures=named, clear=found.clear)


def _figures_of(body: Unwrapped) -> Figures | None:
    """Figures from numeric fields whose names speak of tokens."""
    sentence = " ; ".join(f"{name} is {value}" for name, value in body.figures if SMALLEST <= value < LARGEST)
    found = meaning(sentence + " ; prompt too long").figures if sentence else Figures()
    return found if found.limit is not None and found.requested is not None else None


def _compared(body: Unwrapped) -> Figures:
    """The figures of a message that names no unit, where a code has said what they are of."""
    for message in body.messages:
        found = meaning(f"{message} ; too many prompt tokens").figures
        if found.limit is not None or found.requested is not None:
            return found
    return Figures()


def _by_codes(failure: Failure, codes: tuple[str, ...]) -> Meaning | None:
    """What the first telling code says."""
    for code in codes:
        low = code.strip().lower()
        if not low or low in VAGUE or low.isdecimal():
            continue
        exact = EXACT_CODES.get(low)
        if exact is not None:
            return Meaning(kind=exact, why="the error's code")
        found = meaning(code[:120])
        if found.kind is not None and not (found.kind == "invalid_request" and low.startswith("invalid")):
            windowed = found.why.startswith("the context") or "token" in low
            return Meaning(
                kind=found.kind,
                why=LENGTHY if found.kind == "overflow" and not windowed else "the error's code",
            )
    return None


def _verdict(failure: Failure, found: Meaning) -> Verdict:
    """The verdict that a meaning comes to."""
    kind = found.kind or "other"
    stated = found.figures if kind != "quota" else Figures()
    limit = stated.limit if stated.limit is not None and stated.limit >= SMALLEST else None
    if limit is not None and str(limit) == failure.code:
        limit = None
    fix: Fix = FIXES.get(kind, "none")
    requested = stated.requested
    if kind == "overflow":
        fix = _cure(failure, stated)
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


def _cure(failure: Failure, stated: Figures) -> Fix:
    """Whether fewer output tokens alone make the request fit."""
    if stated.limit is None or stated.output is None or stated.input is None or stated.output == 0:
        return "compact"
    if stated.input >= stated.limit:
        return "compact"
    if stated.lower_bound and stated.requested == stated.limit + 1:
        fits = failure.used is not None and failure.used < stated.limit
        return "lower_output" if fits else "compact"
    return "lower_output"


def _silent(failure: Failure, status: int | None, *, code_verdict: Meaning | None) -> Verdict:
    """The verdict where no words decide: code, stop reason, usage, what is known of the provider, status."""
    if code_verdict is not None and code_verdict.kind is not None:
        return _verdict(failure, code_verdict)
    stop = meaning(failure.stop_reason) if failure.stop_reason else None
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
    if measured and (status is None or status in REFUSING) and _fills(failure):
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
    return "nothing speaks for an overflow" if status is None or status < 400 else f"status {status} alone"


def _fills(failure: Failure) -> bool:
    """Whether usage shows that the window is full: above it, or cut for length at 99 % of it."""
    used, window = failure.used or 0, failure.window or 0
    if window <= 0:
        return False
    if used > window:
        return True
    stop = (failure.stop_reason or "").lower().replace("_", "")
    return any(word in stop for word in CUT) and used + (failure.output or 0) >= FULL * window


def _by_status(status: int | None) -> Kind:
    if status is None or status < 400:
        return "other"
    if status in (401, 403):
        return "auth"
    known: dict[int, Kind] = {402: "quota", 413: "payload_too_large", 429: "rate_limit", 408: "server"}
    return known.get(status, "server" if status >= 500 else "invalid_request")


def _status(text: str, body: Unwrapped) -> int | None:
    """The status that a text tells: in its wrapper, else in its body."""
    found = numbered(text[:400], 0)
    if found is not None:
        return int(next(group for group in found.groups() if group))
    return body.statuses[0] if body.statuses else None


def _classes(prose: str) -> list[str]:
    """Names of exceptions in a wrapper, the last first: it is the nearest to the message."""
    return [name.rsplit(".", 1)[-1] for name in CLASS_NAME.findall(prose[:2000])][::-1]


def _is_google(failure: Failure, body: Unwrapped) -> bool:
    named = (failure.provider or "").lower()
    if any(name in named for name in ("google", "gemini", "vertex")) or "RESOURCE_EXHAUSTED" in body.codes:
        return True
    said = " ".join(body.messages) + body.prose[:2000]
    return "generate_content" in said or "quota metric" in said or "generativelanguage" in said
