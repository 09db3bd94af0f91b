"""A text of the agent's is shortened to whole lines that tell the most."""

from __future__ import annotations

import time

import pytest

from compactd.core.work.condense import clean_lines, condense

REPORT = """\
## Summary

All tests pass. Here's what I changed:

| File | Change |
|------|--------|
| `src/cache.py` | Added `expire()` |
| `src/loader.py` | Reverted to the old reader |

```python
def expire(self) -> None:
    self._entries.clear()
```

- **Cache**: entries expire after 45 s instead of 30 s
- The docs read a little better now

Nothing is committed yet.
"""


def test_code_rulers_and_emphasis_are_left_out_and_rows_are_joined() -> None:
    assert clean_lines(REPORT) == [
        "Summary:",
        "All tests pass. Here's what I changed:",
        "File · Change",
        "`src/cache.py` · Added `expire()`",
        "`src/loader.py` · Reverted to the old reader",
        "- Cache: entries expire after 45 s instead of 30 s",
        "- The docs read a little better now",
        "Nothing is committed yet.",
    ]


def test_a_text_that_fits_is_whole() -> None:
    assert condense(REPORT, 10_000) == clean_lines(REPORT)


def test_gaps_are_marked_and_lines_stay_whole() -> None:
    lines = condense(REPORT, 200)
    whole = clean_lines(REPORT)

    assert sum(map(len, lines)) <= 200 + 2 * len(lines)
    assert all(line.removesuffix(" …") in whole for line in lines)
    assert any(line.endswith(" …") for line in lines)


def test_lines_about_failures_and_outcomes_are_kept_before_others() -> None:
    said = "\n".join(["We begin.", *["The weather is quite nice today."] * 20, "The migration did not work."])

    assert "The migration did not work." in condense(said, 90)


def test_the_value_of_names_decides_between_lines_that_say_as_much() -> None:
    said = (
        "Look at these.\nThe first one is called alpha_one.\nThe other one is called beta_two.\nThat is it."
    )

    def value(line: str) -> float:
        return 10.0 * ("beta_two" in line)

    assert "The other one is called beta_two." in condense(said, 75, value)[1]


@pytest.mark.parametrize("text", ["", "\n\n", "---", "```\ncode\n```", "| --- | --- |"])
def test_a_text_without_prose_gives_nothing(text: str) -> None:
    assert condense(text, 100) == []


def test_a_long_line_is_cut_at_a_sentence_or_at_white_space() -> None:
    said = " ".join(f"word{n}" for n in range(200))

    (line,) = condense(said, 120)

    assert line.endswith(" …")
    assert set(line.removesuffix(" …").split()) <= set(said.split())


def test_a_heading_alone_says_nothing() -> None:
    assert clean_lines("We looked at it.\n\n## Findings\n\n## Results\n\n- one\n") == [
        "We looked at it.",
        "Results:",
        "- one",
    ]


def test_a_heading_of_many_signs_is_read_in_linear_time() -> None:
    begun = time.process_time()
    clean_lines("## " + "# " * 60_000 + "x")

    assert time.process_time() - begun < 2, "seconds of this process; a quadratic reader takes 50"
