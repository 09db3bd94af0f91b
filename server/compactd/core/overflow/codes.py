"""Machine codes of errors: those whose kind is in a table, and those that say no more than the status."""

from __future__ import annotations

from compactd.core.overflow.lists import listed
from compactd.core.overflow.meaning import Kind

EXACT_CODES: dict[str, Kind] = {
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

VAGUE = listed(
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
