"""The suite's reports: as text, as JSON, as JUnit XML, and as a list in the docs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compactd_conformance import report
from compactd_conformance.suite import CHECKS, Verdict

ROOT = Path(__file__).resolve().parents[2]
COMPACTD = (sys.executable, "-m", "compactd")
TWIN = (sys.executable, str(Path(__file__).parent / "twins"), "a UTF-8 cut")

PASSED = Verdict(name="one", framing="lines", law="Law 1", says="One.", outcome="passed", duration_s=0.25)
FAILED = Verdict(
    name="two",
    framing="headers",
    law="Law <2> & \x00more",
    says="Two.",
    outcome="failed",
    duration_s=1.5,
    expected='a "result" <b>',
    seen="\x1b[31m\ud83d nothing ]]>",
    sent=('{"id":1}\n', "Content-Length: 5\r\n\r\n{}"),
    mend="Mend it.",
)
SKIPPED = Verdict(
    name="three",
    framing="lines",
    law="Law 5",
    says="Three.",
    outcome="not tried",
    duration_s=0,
    seen="there is nothing to cut",
)
ALL = (PASSED, FAILED, SKIPPED)


def test_a_check_is_a_line_and_a_failure_says_what_was_expected_seen_and_to_be_done() -> None:
    assert [report.line_of(one) for one in ALL] == [
        "✓ one (lines) · Law 1",
        "✗ two (headers) · Law <2> & \x00more",
        "– three (lines) · Law 5",
    ]
    assert report.lines_below(PASSED) == ()
    assert report.lines_below(SKIPPED) == ("    why       there is nothing to cut",)
    assert report.lines_below(FAILED) == (
        "    says      Two.",
        '    sent      {"id":1} ⏎ Content-Length: 5 {}',
        '    expected  a "result" <b>',
        "    seen      \x1b[31m\ud83d nothing ]]>",
        "    fix       Mend it.",
    )
    assert report.closing_line(ALL) == "1 of 3 passed, 1 not tried, failed: two"


def test_the_junit_report_is_xml_whatever_was_seen() -> None:
    root = ElementTree.fromstring(report.as_junit(ALL))

    assert root.tag == "testsuites"
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped", "time")} == {
        "tests": "3",
        "failures": "1",
        "errors": "0",
        "skipped": "1",
        "time": "1.750",
    }
    assert [suite.get("name") for suite in root] == ["lines", "headers"]
    cases = {case.get("name"): case for case in root.iter("testcase")}
    assert cases["two"].get("classname") == "Law <2> & \ufffdmore"
    failure = cases["two"].find("failure")
    assert failure is not None
    assert failure.get("message") == 'expected a "result" <b>; seen \ufffd[31m\ufffd nothing ]]>'
    assert "fix       Mend it." in (failure.text or "")
    assert cases["one"].find("failure") is None
    assert cases["three"].find("skipped") is not None


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMPACTD, "conformance", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=100,
        check=False,
    )


def test_the_command_ends_with_1_where_a_check_failed_and_writes_the_report_as_xml(tmp_path: Path) -> None:
    wanted = ("--only", "no-character-is-cut", "--only", "repairs-are-told", "--junit", "report.xml")

    done = run(*wanted, "--", *TWIN, cwd=tmp_path)

    assert (done.returncode, done.stderr) == (1, "")
    assert "✗ no-character-is-cut (headers) · Never again: UTF-8 cut in the middle" in done.stdout
    assert "✓ repairs-are-told (headers) · Law 1" in done.stdout
    assert done.stdout.endswith("\n1 of 3 passed, failed: no-character-is-cut\n")
    cases = ElementTree.parse(tmp_path / "report.xml").getroot().iter("testcase")
    assert sorted((case.get("name"), case.find("failure") is not None) for case in cases) == [
        ("no-character-is-cut", True),
        ("no-character-is-cut", True),
        ("repairs-are-told", False),
    ]


def test_without_a_command_our_own_daemon_is_tested_and_json_tells_it_all(tmp_path: Path) -> None:
    done = run("--json", "--only", "unknown-fields", cwd=tmp_path)

    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (told["passed"], told["failed"], told["not_tried"]) == (1, 0, 0)
    assert told["command"][-1] == "serve"
    check = told["checks"][0]
    assert (check["name"], check["framing"], check["outcome"]) == ("unknown-fields", "headers", "passed")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--", "no-such-command-here"), "no-such-command-here: No such file or directory"),
        (("--only", "law-99"), "there is no check 'law-99'"),
        (("--patience", "-1"), "'-1' is not a number of seconds above 0"),
        (
            ("--patience", "1", "--", sys.executable, "-c", "print('Welcome!')"),
            "does not answer `daemon/ping`",
        ),
    ],
)
def test_what_cannot_be_started_ends_with_2_and_says_why(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = run(*arguments, cwd=tmp_path)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_suite_the_command_says_how_to_install_it(tmp_path: Path) -> None:
    # Without the module `site` (-S), Python does not read the .pth file that leads to the suite.
    folders = (str(ROOT / "server"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
    done = subprocess.run(
        [sys.executable, "-S", "-m", "compactd", "conformance", "--only", "one-answer", "--", "my-daemon"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": os.pathsep.join(folders), "HOME": str(tmp_path)},
        cwd=tmp_path,
        timeout=100,
        check=False,
    )

    assert (done.returncode, done.stdout) == (2, "")
    said, hint = done.stderr.splitlines()
    assert said == "the conformance suite is not installed."
    assert hint.startswith("It is released together with compactd. Install it with: ")
    assert " -m pip install " in hint


def test_the_list_of_the_document_is_what_the_suite_has(tmp_path: Path) -> None:
    document = (ROOT / "docs" / "conformance.md").read_text("utf-8")

    done = run("--list", cwd=tmp_path)

    stale = "run `python -m compactd conformance --list --into docs/conformance.md`"
    assert done.stdout == f"{report.list_checks(CHECKS)}\n"
    assert report.with_list(document, CHECKS) == document, stale


def test_a_list_goes_into_a_document_that_has_a_place_for_it_only(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# A\n\n{report.LIST_BEGINS}old{report.LIST_ENDS}\nafter\n")
    (tmp_path / "b.md").write_text("# B\n")

    done = run("--list", "--into", "a.md", cwd=tmp_path)
    refused = run("--list", "--into", "b.md", cwd=tmp_path)

    written = (tmp_path / "a.md").read_text("utf-8")
    assert (done.returncode, written) == (
        0,
        f"# A\n\n{report.LIST_BEGINS}{report.list_checks(CHECKS)}{report.LIST_ENDS}\nafter\n",
    )
    assert refused.returncode == 2
    assert "b.md" in refused.stderr
    assert (tmp_path / "b.md").read_text("utf-8") == "# B\n"
