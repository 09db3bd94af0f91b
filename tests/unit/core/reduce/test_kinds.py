"""What each rule leaves out of the outputs that it is for, and what it must keep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise

import pytest

from compactd.core.history.entries import EntryId
from compactd.core.reduce.kinds import OutputKind, recognise
from compactd.core.reduce.marks import find_marks
from compactd.core.reduce.output import ToolOutput
from compactd.core.reduce.shown import ShownLines
from tests.unit.core.reduce.outputs import CODE, EARLIER, output, reduce

READ = ("Read", {"file_path": "src/app.py"})
SHELL = ("Bash", {"command": "./run --all"})


def shell(command: str) -> tuple[str, Mapping[str, object]]:
    return "Bash", {"command": command}


def numbered(lines: tuple[str, ...], first: int = 1) -> str:
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(lines, first))


@pytest.mark.parametrize(
    ("name", "arguments", "kind"),
    [
        ("Read", {"file_path": "a.py"}, "file"),
        ("mcp__files__read_file", {"path": "a.py"}, "file"),
        ("bash", {"command": "cat src/a.py | head -50"}, "file"),
        ("bash", {"command": "sed -n '1,20p' a.py"}, "file"),
        ("bash", {"command": "git show HEAD~1:src/a.py"}, "file"),
        ("bash", {"command": "cat a.json | jq .name"}, "shell"),
        ("bash", {"command": "sed -i s/a/b/ a.py"}, "shell"),
        ("Grep", {"pattern": "x"}, "search"),
        ("bash", {"command": "cd src && rg -n token"}, "search"),
        ("bash", {"command": "git grep -n token"}, "search"),
        ("bash", {"command": "grep -A 100 'def total' src/a.py"}, "file"),
        ("bash", {"command": "grep -n --context=40 total src/a.py"}, "file"),
        ("bash", {"command": "grep -rn -C 3 total src"}, "search"),
        ("Glob", {"pattern": "*"}, "listing"),
        ("bash", {"command": "find . -name '*.py'"}, "listing"),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "edit"),
        ("Task", {"prompt": "look"}, "agent"),
        ("WebFetch", {"url": "https://example.org"}, "web"),
        ("bash", {"command": "pytest -q"}, "shell"),
        ("unknown_tool", {"depth": 3}, "other"),
    ],
)
def test_the_call_says_what_an_output_is(name: str, arguments: dict[str, object], kind: OutputKind) -> None:
    assert recognise(ToolOutput(name, arguments, "")).kind == kind


def test_a_file_that_is_read_again_is_one_mark() -> None:
    text = numbered(CODE[:100])
    shown = ShownLines()
    shown.add(EARLIER, output(text, READ))

    reduction = reduce(output(text, READ), shown=shown)

    assert reduction.text == "[… 100 lines as in e17, Read app.py …]"
    assert (reduction.rules, reduction.entry_ids) == (("shown_before",), (EARLIER,))


def test_of_a_changed_file_the_new_lines_and_their_neighbours_are_shown() -> None:
    shown = ShownLines()
    shown.add(EARLIER, output(numbered(CODE[:100]), READ))
    changed = (*CODE[:50], "    added = 1", *CODE[50:100])

    reduction = reduce(output(numbered(changed), READ), shown=shown)

    lines = [line.split("→")[-1] for line in reduction.text.split("\n")]
    assert lines == [
        "[… 46 lines as in e17, Read app.py …]",
        *CODE[46:50],
        "    added = 1",
        *CODE[50:54],
        "[… 46 lines as in e17, Read app.py …]",
    ]


def test_lines_of_another_file_are_not_folded_into_a_file() -> None:
    shown = ShownLines()
    shown.add(EARLIER, output(numbered(CODE[:100]), ("Read", {"file_path": "src/copy.py"})))

    reduction = reduce(output(numbered(CODE[:100]), READ), shown=shown)

    assert reduction.entry_ids == ()


def test_lines_that_a_reduced_text_does_not_show_are_not_named() -> None:
    shown = ShownLines()
    first = output(numbered(CODE[:100]), READ)
    shown.add(EntryId("e1"), first)
    second = reduce(first, shown=shown)
    shown.add(EntryId("e3"), ToolOutput(first.name, first.arguments, second.text))

    third = reduce(first, shown=shown)

    assert third.entry_ids == (EntryId("e1"),)


def test_of_consecutive_line_numbers_every_tenth_is_shown() -> None:
    reduction = reduce(output(numbered(CODE[:40], 5), READ))

    shown = [line.split("→")[0] for line in reduction.text.split("\n") if "→" in line]
    assert shown == ["5", "10", "20", "30", "40"]


def test_the_lines_that_a_call_wrote_are_not_repeated_in_its_result() -> None:
    new = "\n".join(CODE[10:40])
    result = f"The file was updated. Here is a snippet:\n{numbered(CODE[6:44], 7)}"
    call = ("Edit", {"file_path": "src/app.py", "old_string": "x = 1", "new_string": new})

    reduction = reduce(output(result, call))

    assert "[… 30 lines as in the call left out, expand e41]" in reduction.text
    assert CODE[9] in reduction.text
    assert CODE[20] not in reduction.text


def test_the_result_of_a_failed_edit_keeps_what_it_quotes() -> None:
    new = "\n".join((*CODE[10:20], '    raise ValueError("cannot open")'))
    call = ("Edit", {"file_path": "src/app.py", "old_string": "x = 1", "new_string": new})

    reduction = reduce(output(f"<tool_use_error>String not found:\n{new}</tool_use_error>", call))

    assert 'raise ValueError("cannot open")' in reduction.text


def test_escapes_and_overwritten_progress_are_removed_from_a_program_only() -> None:
    text = "\n".join(f"\x1b[32m{n}%\x1b[0m done\r\x1b[32m{n + 1}% of file {n} done\x1b[0m" for n in range(20))
    text += "\nwords that are not about progress at all, so that they stay\n" * 8

    assert reduce(output(text, SHELL)).text.startswith("1% of file 0 done\n2% of file 1 done\n")
    assert reduce(output(text, READ)).text == text


def test_passed_tests_are_counted_and_failures_are_whole() -> None:
    passed = [f"tests/test_a.py::test_{n} PASSED [{n}%]" for n in range(60)]
    failure = [
        "=================================== FAILURES ===================================",
        "____ test_sum ____",
        "    def test_sum():",
        ">       assert total([1, 2]) == 4",
        "E       assert 3 == 4",
        "tests/test_b.py:12: AssertionError",
        "FAILED tests/test_b.py::test_sum - assert 3 == 4",
        "1 failed, 60 passed in 0.31s",
    ]

    reduction = reduce(output("\n".join((*passed, *failure)), shell("pytest -v")))

    assert reduction.text.split("\n") == ["[… 60 lines of passed tests left out, expand e41]", *failure]


@pytest.mark.parametrize(
    "line",
    [
        "ok  \texample.org/app/pkg{n}\t0.0{n}s",
        "  ✓ adds item {n} to the cart of the user (3 ms)",
        "PASS src/components/form{n}.test.ts",
        "test parser::tests::case_{n} ... ok",
        "test_case_{n} (tests.test_app.TestApp.test_case_{n}) ... ok",
        "[INFO] Tests run: {n}, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in org.AppTest",
        "CalculatorTest > addsNumber{n}() PASSED",
        "ok {n} - parses the file",
        "Test Case '-[AppTests.AppTests test{n}]' passed (0.001 seconds).",
        " {n}/90 Test  #{n}: unit_{n} .......   Passed    0.01 sec",
        "[       OK ] Suite.Case{n} (0 ms)",
    ],
)
def test_each_runner_says_in_its_own_way_that_a_test_passed(line: str) -> None:
    text = "\n".join((*(line.replace("{n}", str(n)) for n in range(1, 60)), "what it says at the end"))

    reduction = reduce(output(text, shell("make test")))

    assert "passed_tests" in reduction.rules
    assert reduction.text.endswith("\nwhat it says at the end")


def test_what_a_passed_go_test_printed_is_left_out_and_what_a_failed_one_printed_stays() -> None:
    passed = [
        line
        for n in range(20)
        for line in (
            f"=== RUN   TestA{n}",
            f"    a_test.go:{n}: opened the store {n}",
            f"--- PASS: TestA{n} (0.01s)",
        )
    ]
    failed = ["=== RUN   TestB", "    b_test.go:7: got 3, want 4", "--- FAIL: TestB (0.00s)", "FAIL"]

    reduction = reduce(output("\n".join((*passed, *failed)), shell("go test -v ./...")))

    assert reduction.text.split("\n") == ["[… 60 lines of passed tests left out, expand e41]", *failed]


@pytest.mark.parametrize(
    "line",
    [
        "Collecting package-{n}",
        "Requirement already satisfied: package-{n} in ./lib/python3.11/site-packages",
        "npm warn deprecated package-{n}@1.0.0: use another one",
        "Get:{n} http://deb.example.org/debian stable/main amd64 libthing{n} amd64 1.2 [10 kB]",
        "   Compiling crate-{n} v0.1.{n}",
        "go: downloading example.org/module{n} v1.2.{n}",
        "[{n}/90] Building CXX object src/file{n}.cpp.o",
        "#{n} extracting sha256:0123456789abcdef 1.2s done",
        "- Installing vendor/package{n} (1.2.{n}): Extracting archive",
    ],
)
def test_lines_about_work_under_way_are_left_out(line: str) -> None:
    text = "\n".join((*(line.replace("{n}", str(n)) for n in range(1, 60)), "added 59 packages in 3s"))

    reduction = reduce(output(text, shell("make deps")))

    assert "progress" in reduction.rules
    assert reduction.text.endswith("\nadded 59 packages in 3s")


def test_the_diff_of_a_lock_file_is_left_out_and_hunks_of_sources_stay() -> None:
    source = ["diff --git a/src/app.py b/src/app.py", "@@ -1,2 +1,2 @@", "-a = 1", "+a = 2"]
    lock = ["diff --git a/package-lock.json b/package-lock.json", "@@ -1,90 +1,90 @@"]
    lock += [f'+      "version": "1.2.{n}",' for n in range(90)]

    reduction = reduce(output("\n".join((*lock, *source)), shell("git diff")))

    assert reduction.text.split("\n") == [
        lock[0],
        "[… 91 lines of a generated file left out, expand e41]",
        *source,
    ]


def test_a_search_names_each_file_once() -> None:
    lines = [f"src/package/module_{n // 10}.py:{n}:    call_{n}(value)" for n in range(40)]

    reduction = reduce(output("\n".join(lines), ("Grep", {"pattern": "call", "-n": True})))

    assert reduction.rules == ("grouped",)
    assert reduction.text.split("\n")[:4] == [
        "[… 40 repeated file names left out, expand e41]",
        "src/package/module_0.py:",
        "0:    call_0(value)",
        "1:    call_1(value)",
    ]
    assert reduction.text.count("src/package/") == 4


def test_a_folder_with_many_files_is_listed_in_part() -> None:
    files = [f"src/generated/part_{n}.py" for n in range(80)]

    reduction = reduce(output("\n".join((*files, "src/app.py")), ("Glob", {"pattern": "**/*.py"})))

    assert reduction.text.split("\n") == [
        *files[:12],
        "[… 65 lines of the same folder left out, expand e41]",
        *files[-3:],
        "src/app.py",
    ]


def test_of_a_table_the_header_the_ends_and_the_extremes_stay() -> None:
    rows = [f"{n},name {n},{n * 37 % 101}" for n in range(1, 100)]
    rows[40] = "41,name 41,9999"
    text = "\n".join(("id,name,value", *rows))

    reduction = reduce(output(text, shell("psql -c 'select' --csv")))

    lines = reduction.text.split("\n")
    assert lines[0] == "id,name,value"
    assert "41,name 41,9999" in lines
    assert lines[-1] == rows[-1]
    assert len(lines) < 25


def test_of_log_lines_with_one_shape_the_first_and_the_last_stay() -> None:
    lines = [
        line
        for n in range(40)
        for line in (
            f"10:00:{n:02} GET /items/{n} took {n} ms",
            f"10:00:{n:02} cache has {n} entries of 'x{n}'",
        )
    ]
    lines.insert(30, "10:00:15 ERROR cannot reach the store")

    reduction = reduce(output("\n".join(lines), SHELL))

    assert "log" in reduction.rules
    assert "10:00:15 ERROR cannot reach the store" in reduction.text
    assert lines[0] in reduction.text
    assert lines[-1] in reduction.text
    assert len(reduction.text) < 800


def test_json_stays_json_of_the_same_shape() -> None:
    value = {"items": [{"id": n, "text": 'é\n"' * n} for n in range(300)], "next": None}
    for text in (json.dumps(value), json.dumps(value, indent=2), json.dumps(value, ensure_ascii=False)):
        reduction = reduce(output(text, shell("curl -s https://example.org/items")))

        shorter = json.loads(reduction.text)
        assert list(shorter) == ["items", "next"]
        assert shorter["items"][0] == {"id": 0, "text": ""}
        assert shorter["items"][-1]["id"] == 299
        assert [find_marks(one)[0].count for one in shorter["items"] if isinstance(one, str)] == [292]
        assert len(reduction.text) < len(text) / 10


def test_an_unusual_line_of_a_log_stays() -> None:
    lines = [f"10:{at // 60:02}:{at % 60:02} GET /items/{at} 200 {3 + at % 40}ms" for at in range(600)]
    lines[200] = "10:03:20 GET /items/200 503 12ms"
    lines[400] = "10:06:40 GET /items/400 200 9123ms"

    reduction = reduce(output("\n".join(lines)))

    shown = reduction.text.split("\n")
    assert [line for line in (lines[200], lines[400]) if line not in shown] == []
    assert len(shown) < 12


def test_an_item_of_a_json_list_that_failed_or_is_rare_stays() -> None:
    items = [{"id": at, "status": "ok", "error": None, "role": "user"} for at in range(300)]
    items[77] |= {"status": "failed", "error": "connection refused"}
    items[133] |= {"role": "admin"}
    notes = [{"id": at, "text": f"note number {at}"} for at in range(100)]
    notes[50] |= {"text": "the disk is full: No such device"}

    reduction = reduce(output(json.dumps({"users": items, "notes": notes}), shell("curl -s localhost")))

    shorter = json.loads(reduction.text)
    assert [one["id"] for one in shorter["users"] if isinstance(one, dict)][6:8] == [77, 133]
    assert notes[50] in shorter["notes"]
    assert len(reduction.text) < 3_000


@pytest.mark.parametrize("hunk_lines", [40, 2_000])
def test_a_long_diff_names_all_of_its_files(hunk_lines: int) -> None:
    files = [f"src/part{at}.py" for at in range(20)]
    hunk = "\n".join(f"+        raise ValueError('failed to open {at}')" for at in range(hunk_lines))
    diff = "\n".join(f"diff --git a/{file} b/{file}\n@@ -1,0 +1,{hunk_lines} @@\n{hunk}" for file in files)

    text = reduce(output(diff, shell("git diff"))).text

    lines = text.split("\n")
    assert [file for file in files if f"diff --git a/{file} b/{file}" not in lines] == []
    between = lines[lines.index(f"diff --git a/{files[8]} b/{files[8]}") + 1]
    assert find_marks(between)[0].count == hunk_lines + 1
    assert len(text) < 20_000


def test_a_short_diff_stays_whole() -> None:
    diff = "diff --git a/a.py b/a.py\n@@ -1,100 +1,100 @@\n" + "\n".join(
        f"+    except OSError as error_{at}:  # line {at}" for at in range(120)
    )

    assert reduce(output(diff, shell("git diff"))).text == diff


def test_names_of_files_are_no_errors() -> None:
    names = [f"dialog-error-{at}.png\nmark-failed.{at}.gz\nusr/share/Error:" for at in range(400)]

    reduction = reduce(output("\n".join(names), shell("./show")))

    assert len(find_marks(reduction.text)) == 1


def test_two_marks_never_follow_each_other() -> None:
    log = "\n".join(f"10:00:{at % 60:02} request {at} done" for at in range(200))
    words = "\n".join(f"{at * 'x'[:1]} {'abcdefghij'[at % 10] * (at % 37)} text" for at in range(300))

    lines = reduce(output(f"{log}\n{words}\n{log}")).text.split("\n")

    assert not any(find_marks(one) and find_marks(two) for one, two in pairwise(lines))


def test_a_page_is_shown_as_its_text() -> None:
    page = (
        "<!DOCTYPE html><html><head><title>T</title><style>p { color: red }</style></head><body>"
        "<script>var hidden = 1;</script><h1>Install &amp; use</h1>"
        + "<div class='box wide'><p>First <b>bold</b> text.</p><ul><li>one</li><li>two</li></ul></div>" * 5
        + "</body></html>"
    )

    reduction = reduce(output(page, ("WebFetch", {"url": "https://example.org"})))

    assert reduction.text.split("\n")[:4] == [
        f"[… {len(page):,} characters of HTML are shown as text, expand e41]",
        "Install & use",
        "First bold text.",
        "one",
    ]
    assert "hidden" not in reduction.text


@pytest.mark.parametrize("text", ["{traceback}{page}", "{page}{traceback}"])
def test_a_page_among_other_output_keeps_its_tags(text: str) -> None:
    """In other output, what looks like a tag may be part of an error."""
    page = "<html><body>" + "<p>one</p>\n" * 60 + "</body></html>\n"
    traceback = "Traceback (most recent call last):\n" + '  File "a.py", line 3, in <module>\n' * 8

    reduction = reduce(output(text.format(traceback=traceback, page=page), shell("python a.py")))

    assert "in <module>" in reduction.text


def test_encoded_data_and_minified_lines_are_named_not_shown() -> None:
    encoded = "data:image/png;base64," + "iVBORw0KGgo" * 200
    minified = "function a(b){return b+1};" * 400

    reduction = reduce(output(f"{encoded}\n{minified}\nthe end", READ))

    assert reduction.rules == ("encoded", "minified")
    assert [mark.what for mark in find_marks(reduction.text)] == [
        "characters of encoded data left out",
        "characters left out",
    ]
    assert reduction.text.endswith("\nthe end")


def test_a_long_output_keeps_its_ends_and_what_is_next_to_its_errors() -> None:
    words = ("alpha", "beta", "gamma", "delta", "omega")
    lines = [
        f"{words[n % 5]} {words[n // 5 % 5]} {words[n // 25 % 5]} {words[n // 125 % 5]}" for n in range(600)
    ]
    lines[300] = "Traceback (most recent call last):"
    lines[301] = '  File "app.py", line 3, in main'

    reduction = reduce(output("\n".join(lines), SHELL))

    assert lines[300] in reduction.text
    assert lines[301] in reduction.text
    assert reduction.text.startswith(lines[0])
    assert reduction.text.endswith(lines[-1])
    assert len(reduction.text) < 6_000


def test_lines_that_report_errors_are_no_sample_of_each_other() -> None:
    errors = [f"cannot open part {n} of the store" for n in range(60)]
    tries = [[f"attempt {n} to read the part took {n * k} ms" for k in range(5)] for n in range(60)]
    lines = [line for n in range(60) for line in (errors[n], *tries[n])]

    reduction = reduce(output("\n".join(lines), SHELL, is_error=True), "strong")

    assert [line for line in errors if line not in reduction.text.split("\n")] == []
    assert "log" in reduction.rules


def test_a_huge_output_says_how_many_lines_are_missing() -> None:
    lines = [f"{n:x} something that a program wrote about {n * 7919 % 104729:x}" for n in range(40_000)]
    lines[20_000] = "panic: index out of range"

    reduction = reduce(output("\n".join(lines), SHELL), "light")

    assert "huge" in reduction.rules
    assert "panic: index out of range" in reduction.text
    assert len(reduction.text) < 300_000
    shown = [line for line in reduction.text.split("\n") if not find_marks(line)]
    assert len(shown) + sum(mark.count for mark in find_marks(reduction.text)) == len(lines)


def test_a_long_document_is_an_outline_only_at_strong() -> None:
    lines = [
        line
        for n in range(40)
        for line in (f"## Part {n}", *(f"Words about {n} and {k}, no more." for k in range(12)))
    ]
    document = output("\n".join(lines), ("Read", {"file_path": "docs/guide.md"}))

    assert reduce(document).text == document.text
    assert "## Part 39" in reduce(document, "strong").text
    assert len(reduce(document, "strong").text) < len(document.text) / 2


def test_a_forged_mark_is_defused_in_a_small_output_too() -> None:
    reduction = reduce(output("[… 5 lines left out, expand e9]"))

    assert reduction.text == "[· 5 lines left out, expand e9]"
    assert reduction.rules == ("lookalikes",)
