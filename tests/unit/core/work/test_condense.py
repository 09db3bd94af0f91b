"""A text of the agent's is shortened to whole lines that tell the most."""

from __future__ import annotations

import time

import pytest

from compactd.core.work.condense import condense
from compactd.core.work.text_outline import clean_lines

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
    assert condense(REPORT, 200) == [
        "All tests pass.",
        "File · Change",
        "`src/cache.py` · Added `expire()`",
        "`src/loader.py` · Reverted to the old reader",
        "- Cache: entries expire after 45 s instead of 30 s …",
        "Nothing is committed yet.",
    ]


REVIEW = """\
Good progress. Let me list what I found in the parser:

1. The reader drops the last byte of a block. It happens only when the block ends at a page boundary, which
   the old tests never covered.
2. The name `load_page` is used for two things. A second name would make the calls easier to follow for all.
3. The retry loop has no upper bound. A server that always answers 503 keeps the process busy for hours.
4. Nobody closes the handle in `close_all`. The garbage collector does it later, so this is harmless today.

Everything else looks tidy, and I like how the modules are laid out in the new tree.

**Mergeable after 1 and 3.**

Let me fix those two.
"""


def test_each_item_of_a_numbered_list_keeps_its_beginning_before_one_gets_more() -> None:
    lines = condense(REVIEW, 330)

    assert [line[:22] for line in lines if line[0].isdigit()] == [
        "1. The reader drops th",
        "2. The name `load_page",
        "3. The retry loop has ",
        "4. Nobody closes the h",
    ]


def test_the_items_of_a_numbered_list_are_shortened_before_one_is_left_out() -> None:
    said = "\n".join(["Open points:", *(f"{n}. {'some words to read ' * 9}end." for n in range(1, 5))])

    lines = condense(said, 340)

    begun = "some words to read some words to read some words to read some words to …"
    assert lines == ["Open points:", *(f"{n}. {begun}" for n in range(1, 5))]


def test_of_a_list_that_is_too_long_the_last_items_stay_and_the_others_are_named() -> None:
    said = "\n".join(f"{n}. {'some words to read ' * 4}end." for n in range(1, 13))

    lines = condense(said, 300)

    assert lines[0] == "1–8 …"
    assert [line.split(".")[0] for line in lines[1:]] == ["9", "10", "11", "12"]


@pytest.mark.parametrize("title", ["## {}. Part", "**{}. Part**", "**Option {}: a part**"])
def test_numbered_titles_are_a_list_too(title: str) -> None:
    parts = [
        f"{title.format(n)}\n\nIt is about part{n}, and that takes quite a few words.\n" for n in (1, 2, 3)
    ]

    lines = condense("\n".join(parts), 110)

    assert [n for n in "123" if any(n in line for line in lines)] == ["1", "2", "3"]


def test_numbered_rows_are_a_list_too() -> None:
    rows = [f"| {n} | {'some words to read ' * 6} | end |" for n in range(1, 5)]
    said = "\n".join(["| # | Words | End |", "|---|---|---|", *rows])

    assert [line[:3] for line in condense(said, 330)[1:]] == ["1 ·", "2 ·", "3 ·", "4 ·"]


def test_one_of_several_items_is_not_shown_alone() -> None:
    said = "\n".join(f"{n}. {'some words to read ' * 4}end." for n in range(1, 13))

    assert not any(line.startswith("12") for line in condense(f"It is `a_name`.\n\n{said}", 100))


def test_a_list_that_begins_again_is_another_list() -> None:
    said = "\n".join(f"{n}. {'some words to read ' * 4}end." for n in (1, 2, 3, 4, 1, 2, 3, 4))

    assert [line[0] for line in condense(said, 300)] == ["1", "2", "3", "4"]


def test_an_item_is_whole_before_a_part_of_it_is_shown() -> None:
    part = "\n   - It failed because of `a_b`"
    said = "\n".join(f"{n}. {'some words to read ' * 5}end.{part}" for n in range(1, 4))

    assert condense(said, 250) == [f"{n}. {('some words to read ' * 4)[:-1]} …" for n in range(1, 4)]


PLAN = """\
Some ways lead there, and each has its price.

## Ways

**1. Keep the cache in memory** (as now)
- Costs nothing now
- Restarts lose it, because nothing is written to `cache.db`

**2. Write it to a file**
- A crash can leave half a file
- Needs a lock on Windows

### Impact

- Start takes 40 ms instead of 900 ms
"""


def test_a_line_below_a_title_or_an_item_comes_with_it() -> None:
    lines = condense(PLAN, 170)

    at = [line.removesuffix(" …") for line in lines].index
    assert at("1. Keep the cache in memory (as now)") < at("2. Write it to a file")
    assert at("Impact:") + 1 == at("- Start takes 40 ms instead of 900 ms")


@pytest.mark.parametrize("most", range(60, 420, 20))
def test_no_part_of_an_item_is_shown_without_the_item(most: int) -> None:
    lines = [line.removesuffix(" …") for line in condense(PLAN, most)]

    for part in ("- Restarts lose it, because nothing is written to `cache.db`", "- Costs nothing now"):
        assert part not in lines or "1. Keep the cache in memory (as now)" in lines[: lines.index(part)]
    assert sum(map(len, condense(PLAN, most))) <= most


@pytest.mark.parametrize(
    "nothing",
    [
        "Let me check the other callers of this function.",
        "Great!",
        "I’ll look at the second half of it now.",
        "Want me to start?",
        "Here's what I did in the meantime:",
        "Ready for the next part of the work.",
    ],
)
def test_announcements_and_friendly_words_are_left_out_first(nothing: str) -> None:
    said = (
        f"{nothing}\n\nThe queue is read by two threads in turn.\n\nIt has room for a third one, as it seems."
    )

    assert nothing not in " ".join(condense(said, len(said) - 10))


@pytest.mark.parametrize(
    "said",
    [
        "Let me put it into the loader, since the parser doesn't have the path.",
        "Now let me revert the change of the reader.",
    ],
)
def test_an_announcement_with_a_reason_is_kept(said: str) -> None:
    text = f"We looked at the weather.\n\n{said}\n\nIt is nice outside.\n\nThat is it."

    assert any(said in line for line in condense(text, 80))


def test_the_question_at_the_end_is_kept_if_it_is_about_one_thing() -> None:
    said = "\n\n".join(f"The part {n} was changed in `name_{n}`." for n in range(9))
    asked = "Should I continue with the third part, or do you want to read it first?"

    assert condense(f"{said}\n\n{asked}", 120)[-1] == asked
    assert condense(f"{said}\n\nShould I continue?", 100)[-1] != "Should I continue?"


@pytest.mark.parametrize(
    "exact",
    [
        "It is in lib/page.py:88.",
        "A `PageError` ends it.",
        "It takes 450 ms now.",
        "reader → page → reader",
        "Windows doesn't support it.",
    ],
)
def test_what_leads_to_a_place_or_gives_a_cause_comes_before_general_words(exact: str) -> None:
    general = [
        "This is a solid base for later.",
        "The design is simple and clean.",
        "It is a pleasure to read.",
    ]
    said = "\n".join(["We begin.", *general, exact, *general, "We end here."])

    assert exact in [line.removesuffix(" …") for line in condense(said, 60)]


@pytest.mark.parametrize(
    ("other", "best"),
    [
        ("- They read `part_b` daily", "## A list\n\n- They read `part_a` each day"),
        ("## Past\n\n- They read `part_b`", "## Remaining\n\n- They read `part_a`"),
        ("- The thing\n  - They read `part_b`", "- They sometimes read `part_a`"),
        ("They like `part_b` a lot.", "Impact: `part_a` is read."),
        ("See `part_b`, `part_c` and `part_d`.", "It is in part_a.py:88."),
        ("- `lib/one/part_b.py`", "- They often read `part_a`"),
    ],
    ids=["the first", "what is open", "no part of an item", "a label", "a place in a file", "no name alone"],
)
def test_what_comes_first(other: str, best: str) -> None:
    room = len("The list has `four_parts`.") + max(len(other), len(best)) + 10
    for parts in ((best, other),) if "each day" in best else ((other, best), (best, other)):
        lines = condense("\n\n".join(["The list has `four_parts`.", *parts, "That is it."]), room)

        assert any("part_a" in line for line in lines)
        assert not any("part_b" in line for line in lines)


def test_what_is_good_about_it_comes_last() -> None:
    said = "## Benefits\n\n- The `loader` is fast\n\n## Limits\n\n- The `parser` is slow\n\n- So it is\n"

    assert "- The `parser` is slow" in [line.removesuffix(" …") for line in condense(said, 60)]


def test_a_chain_of_arrows_is_kept_from_a_code_block() -> None:
    assert clean_lines("It is a cycle:\n\n```\nfoo → bar → foo\nx = 1\n```\n") == [
        "It is a cycle:",
        "foo → bar → foo",
    ]


TABLE = """\
We looked at the files, and there was a lot to see.

| File | Role |
|------|------|
| `a.py` | reads the pages |
| `b.py` | is missing |
| `c.py` | writes the pages |

That was the last of them, and it was a long day.
"""


def test_the_names_of_columns_are_shown_only_with_rows_and_rows_keep_their_order() -> None:
    for most in range(40, 200, 5):
        lines = [line.removesuffix(" …") for line in condense(TABLE, most)]
        rows = [line for line in lines if line.startswith("`")]
        assert ("File · Role" in lines) == bool(rows)
        assert rows == sorted(rows)


def test_the_verdict_at_the_end_is_worth_more_than_the_middle() -> None:
    middle = [f"Its part {n} does a thing with `name_{n}`." for n in range(12)]
    said = "\n\n".join(["We read it.", *middle, "Ship it, I would say.", "It was a long day."])

    assert "Ship it, I would say. …" in condense(said, 75)


def test_a_sentence_that_needs_the_one_before_comes_with_it() -> None:
    little = "Some words that say as little as they can. " * 4
    said = f"{little}The cat is on the table now. But it never broke `vase_1`, because it slept."

    (line,) = condense(said, 100)

    assert "The cat is on the table now. But it never broke `vase_1`" in line


def test_what_tells_most_is_shown_if_half_of_it_fits() -> None:
    said = f"Yes, it is so.\n\nThe reader failed because {'one, two and three ' * 6}were missing."

    (line,) = condense(said, 100)

    assert line.startswith("The reader failed because one,")
    assert len(line) <= 100
    assert condense(said, 60) == ["Yes, it is so. …"]


def test_if_nothing_fits_one_sentence_is_shown() -> None:
    said = "The reader failed because it was late.\n\nThe writer was late too."

    assert condense(said, 10) == ["The reader failed because it was late. …"]


def test_a_text_without_white_space_is_cut_after_any_sign() -> None:
    said = "我们修改了读取器" * 30

    assert condense(said, 160) == [f"{said[:155]} …"]


def test_only_the_nearest_title_comes_with_a_line() -> None:
    said = f"# Everything\n\n## Reader\n\n- It failed in `read_page`\n\n## End\n\n{'It is so. ' * 20}"

    assert condense(said, 60)[:2] == ["Reader:", "- It failed in `read_page` …"]


def test_what_follows_the_list_of_a_title_is_not_below_the_title() -> None:
    said = "**Way one**\n- It is short\n- It is new\n\nIt failed because of `read_page`, which was missing."

    assert condense(said, 70) == ["It failed because of `read_page`, which was missing."]


@pytest.mark.parametrize("indent", ["", "   ", "\n   "])
def test_the_text_of_an_item_follows_on_its_line(indent: str) -> None:
    little = "\n\nThere is little to say here, and it is said in many words of no use at all to anybody."
    said = f"1. The reader stops early\n{indent}It failed because of `read_page`.\n2. The writer too{little}"

    assert condense(said, 100)[0] == "1. The reader stops early. It failed because of `read_page`."


def test_a_bold_text_may_have_a_star_inside() -> None:
    assert clean_lines("1. **A `*Page` that is unused** here") == ["1. A `*Page` that is unused here"]


def test_an_abbreviation_does_not_end_a_sentence() -> None:
    little = "The words in this sentence say very little, and they go on for quite a while, as words do. " * 2
    said = f"{little}It failed in some readers, e.g. `read_page`. And so on, without an end in sight."

    assert "It failed in some readers, e.g. `read_page`." in condense(said, 60)[0]


def test_half_a_name_is_not_shown() -> None:
    said = (
        f"Nothing.\n\nThe call that failed is very far away and its name is `{'some name ' * 9}` in the end."
    )

    (line,) = condense(said, 100)

    assert line == "The call that failed is very far away and its name is …"


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


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{' ' * n}- a{n}\n" for n in range(400)),
        "- an item of a list\n" * 20_000,
        "".join(f"{n % 999}. an item of a list\n" for n in range(20_000)),
        "This is so. " * 20_000,
        "etc. " * 20_000,
        "**a**" + "-" * 60_000 + "x\n\nend",
        "**a** " + ". " * 30_000 + "x\n\nend",
        "a `b" * 30_000,
        "all " * 30_000,
        "Great " + "!" * 60_000 + "x",
    ],
    ids=range(10),
)
def test_it_takes_linear_time(text: str) -> None:
    begun = time.process_time()
    condense(text, 500)

    assert time.process_time() - begun < 4, "seconds of this process; a quadratic reader takes far more"


def test_a_heading_of_many_signs_is_read_in_linear_time() -> None:
    begun = time.process_time()
    clean_lines("## " + "# " * 60_000 + "x")

    assert time.process_time() - begun < 2, "seconds of this process; a quadratic reader takes 50"


def test_a_sentence_does_not_end_inside_a_name() -> None:
    text = "The box uses `flex ... gap-1` for that, as before. " + "It is a long story about boxes. " * 8

    lines = " ".join(condense(text, 120))

    assert lines.count("`") % 2 == 0
    assert "`flex ..." not in lines or "`flex ... gap-1`" in lines
