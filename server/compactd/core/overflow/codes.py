"""Tables of the machine codes of errors, and a search for the HTTP status in an error's words. One table
gives the kind of codes whose words would mislead; the other lists codes that say no more than the status."""

from __future__ import annotations

import re
from functools import cache
from itertools import islice

from compactd.core.overflow.meaning import FailureKind
from compactd.core.overflow.vocabulary import word_set

EXACT_CODES: dict[str, FailureKind] = {
    "resource_exhausted": "rate_limit",
    "resourceexhausted": "rate_limit",
    "api_error": "server",
    "internal": "server",
    "unknown_error": "server",
    "prompt_blocked": "content_filter",
    "data_inspection_failed": "content_filter",
    "content_policy_violation": "content_filter",
    "insufficient_quota": "quota",
    "billing_error": "quota",
    "arrearage": "quota",
    "string_above_max_length": "payload_too_large",
    "not_found_error": "invalid_request",
    "model_not_found": "invalid_request",
    "resourcenotfoundexception": "invalid_request",
    "serviceunavailableexception": "server",
    "modelnotreadyexception": "server",
    "accessdeniedexception": "auth",
    "permission_denied": "auth",
}
"""The kind of each code whose words would mislead. All other codes are read like sentences."""

VAGUE = word_set(
    "invalid_request_error invalid_request invalid_argument invalid-argument validationexception"
    " bad_request error badrequesterror invalidrequesterror apierror api_error_event validation"
    " invalid_params message_delta validation_error invalid_value badrequest apistatuserror"
    " invalidparameter invalid_parameter tokens unprocessable_entity invalid_request_invalid_args"
    " input_validation_error failed_precondition value_error request_error client_error unknown"
    " internal_error_details valueerror runtimeerror exception max_tokens length http_error"
    " modelerrorexception modelstreamerrorexception"
)
"""Codes that say no more than the status."""
REFUSED = (
    r"(?i)(?:invalid|bad)[_-]?\w*(?:request|argument|parameter|input|value)|validation_?(?:error|exception)"
)
"""Matches vague codes that mean the same as status 400."""


STATUS = (
    r"(?i)(?:status(?:[ _]?code)?|error(?: code)?|http(?:/[\d.]+)?|code|rejected|api error|capierror|failed"
    r"|response)[\"']?[\s:=(\[]{0,3}\b([45]\d\d)\b|^\W{0,3}([45]\d\d)\b|(?<!tokens )(?<!length )"
    r"[(<\[](4[0-4]\d|451|50\d|51[01]|52\d|530)[)>\]]"
    r"|:\s([45]\d\d)(?=\s?[\"'{])"
)
"""Matches a status together with the words or brackets that identify it."""
NUMBER = r"(?<!\d)[45]\d\d(?!\d)"
"""Matches a number in the range of HTTP error statuses."""
NUMBERS = 12
"""The maximum number of three-digit numbers from 400 to 599 that one search for a status examines."""
BEFORE = 40
"""The words that identify a status begin at most this many characters before its number."""


def find_status(text: str, start: int) -> re.Match[str] | None:
    """Return the match of the first status in `text` from index `start` on; None if there is none."""
    for number in islice(re.finditer(NUMBER, text[start:]), NUMBERS):
        at = start + number.start()
        found = _statuses().search(text, max(start, at - BEFORE), at + 5)
        if found is not None:
            return found
    return None


@cache
def _statuses() -> re.Pattern[str]:
    return re.compile(STATUS)


def without_statuses(prose: str) -> str:
    """Return `prose` without the first two statuses in it."""
    at = 0
    for _ in range(2):
        found = find_status(prose, at)
        if found is None:
            break
        at = found.start() + 1
        prose = f"{prose[: found.start()]} {prose[found.end() :]}"
    return prose
