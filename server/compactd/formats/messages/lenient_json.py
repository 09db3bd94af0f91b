"""Read fields of JSON leniently: a field that is missing or has another type gives a default, never an error.

Other programs change their session files with every release. A reader uses what it knows and ignores the
rest.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw

from compactd.formats.files.session_file import text_field
from compactd.formats.messages.json_parts import elements, fields, first_byte, string
from compactd.protocol.messages import NULL, Meta

Given = dict[str, Raw]

MAX_COST = 1e9
"""A larger reported cost, in US dollars, is not believed."""


def object_in(given: Given, name: str) -> Given:
    """Return the fields of the object `given[name]`; empty if it is missing or something else."""
    raw = given.get(name, NULL)
    return fields(raw, f"$.{name}", name) if first_byte(raw) == b"{" else {}


def list_in(given: Given, name: str) -> tuple[Raw, ...]:
    """Return the elements of the list `given[name]`; empty if it is missing or something else."""
    raw = given.get(name, NULL)
    return elements(raw, f"$.{name}") if first_byte(raw) == b"[" else ()


def objects_in(given: Given, name: str) -> list[Given]:
    """Return the objects in the list `given[name]`. Other elements are skipped."""
    return [fields(raw, f"$.{name}", name) for raw in list_in(given, name) if first_byte(raw) == b"{"]


def texts_in(given: Given, name: str) -> tuple[str, ...]:
    """Return the strings in the list `given[name]`. Other elements are skipped."""
    return tuple(string(raw, f"$.{name}") for raw in list_in(given, name) if first_byte(raw) == b'"')


def text_in(given: Given, name: str) -> str:
    """Return the string `given[name]`; empty if it is missing or something else."""
    return text_field(given, name) or ""


def number_in(given: Given, name: str) -> float | None:
    """Return the number `given[name]`; None if it is missing or something else."""
    raw = bytes(given.get(name, NULL))
    try:
        return msgspec.json.decode(raw, type=float) if raw[:1] in b"-0123456789" and raw else None
    except msgspec.DecodeError:
        return None


def cost_in(given: Given, name: str) -> float | None:
    """Return the reported cost `given[name]`, in US dollars; None if it is missing, 0, or no cost. Agents
    write 0 if they know no price."""
    number = number_in(given, name)
    return number if number is not None and 0 < number < MAX_COST else None


def count_in(given: Given, name: str) -> int:
    """Return the whole number `given[name]`; 0 if it is missing, negative or something else."""
    number = number_in(given, name)
    return int(number) if number is not None and number > 0 else 0


def is_list(raw: Raw) -> bool:
    """Return whether the JSON is a list."""
    return first_byte(raw) == b"["


def is_object(raw: Raw) -> bool:
    """Return whether the JSON is an object."""
    return first_byte(raw) == b"{"


def is_text(raw: Raw) -> bool:
    """Return whether the JSON is a string."""
    return first_byte(raw) == b'"'


def summary_meta(given: Given, read_files: str, modified_files: str) -> Meta:
    """Return the meta of a summary. `given` has its lists of files in the fields named `read_files` and
    `modified_files`.
    """
    return Meta(
        type="compaction_summary",
        read_files=texts_in(given, read_files),
        modified_files=texts_in(given, modified_files),
    )


def read_usage(
    input_tokens: int, output_tokens: int, *, read: int = 0, written: int = 0, reasoning: int = 0
) -> Raw | None:
    """Return these token counts as a usage report in neutral form; None if all counts are 0. `input_tokens`
    must not include the tokens that were `read` from or `written` to the cache.
    """
    report = {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_read_tokens": read,
        "cache_write_tokens": written,
        "reasoning_tokens": reasoning,
    }
    if not any(report.values()):
        return None
    needed = ("input_tokens", "output_tokens")
    return Raw(msgspec.json.encode({k: v for k, v in report.items() if v or k in needed}))
