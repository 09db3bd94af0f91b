"""Finds what a summary states although the conversation does not contain it."""

from __future__ import annotations

import pytest

from compactd.core.summary.fidelity import find_unfounded

PAST = (
    "Mend src/loader/cache.py: KeyError in token_loop, 1,024 times, see /srv/app/etc/conf.toml",
    "npm run build\n&& go test ./...",
)


@pytest.mark.parametrize(
    "summary",
    [
        "src/loader/cache.py and token_loop",
        "- cache.py was mended, loader/cache.py too",
        "etc/conf.toml",
        "1024 times, or 1,024",
        "1. Ran `npm run build`.\n2. Then 7 more.",
        "It is JavaScript, on GitHub.",
        "the loader/cache/token question",
        "`x = y(1)` and `some other words`",
    ],
)
def test_what_the_past_holds_in_another_form_is_founded(summary: str) -> None:
    assert find_unfounded(summary, (), PAST, ("npm",)) == ()


@pytest.mark.parametrize(
    ("summary", "invented"),
    [
        ("src/loader/other.py", "src/loader/other.py"),
        ("token_pool is at fault", "token_pool"),
        ("seen 4096 times", "4096"),
        ("Ran `npm run deploy`.", "npm run deploy"),
        ("with --no-cache", "--no-cache"),
        ("in 1.2.3", "1.2.3"),
        ("`JavaScript`", "JavaScript"),
    ],
)
def test_what_the_past_does_not_hold_is_named(summary: str, invented: str) -> None:
    assert find_unfounded(summary, (), PAST, ("npm",)) == (invented,)
    assert find_unfounded(summary, (f"look at {invented}",), PAST, ("npm",)) == ()


def test_at_most_twenty_are_named_in_their_order() -> None:
    summary = " ".join(f"name_{n}" for n in range(30))

    assert find_unfounded(summary, (), PAST) == tuple(f"name_{n}" for n in range(20))
