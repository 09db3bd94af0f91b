"""`truncation: auto` of OpenAI's Responses: the server drops items from the beginning until the request fits.

"If the input to this Response exceeds the model's context window size, the model will truncate the response
to fit the context window by dropping items from the beginning of the conversation." (API reference, "Create a
model response", seen 2026-11.) Which items go together is not documented: a call and its output do here.
"""

from __future__ import annotations

from tests.frameworks.support.reading import tokens_in
from tests.support.loopback.writing import Json


def apply(body: Json, window: int | None) -> Json:
    """Return the request as the model gets it. Without `truncation: auto`, it is the request itself."""
    items = body.get("input")
    if window is None or body.get("truncation") != "auto" or not isinstance(items, list):
        return body
    left = list(items)
    while len(left) > 1 and tokens_in({**body, "input": left}) > window:
        first = left.pop(0)
        if first.get("type") == "function_call":
            left = [item for item in left if item.get("call_id") != first["call_id"]]
    return {**body, "input": left}
