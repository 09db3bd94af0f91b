"""Reports of a conformance run as text, JSON and JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import wrap

from compactd_conformance.bench import Check
from compactd_conformance.suite import Outcome, Verdict

LIST_COLUMNS = 100

_MARKS: dict[Outcome, str] = {"passed": "✓", "failed": "✗", "not tried": "–"}

# Characters that XML 1.0 (5th edition, 2.2 "Characters") does not allow, even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def count(verdicts: Sequence[Verdict], outcome: Outcome) -> int:
    """Return the number of verdicts with this outcome."""
    return sum(verdict.outcome == outcome for verdict in verdicts)


def line_of(verdict: Verdict) -> str:
    """Return the line of the text report for one verdict."""
    return f"{_MARKS[verdict.outcome]} {verdict.name} ({verdict.framing}) · {verdict.law}"


def lines_below(verdict: Verdict) -> tuple[str, ...]:
    """Return the lines of the text report that say why a check did not pass. They follow the line of its
    verdict. Empty if the check passed.
    """
    match verdict.outcome:
        case "passed":
            return ()
        case "not tried":
            return (f"    why       {verdict.seen}",)
        case _:
            sent = " ⏎ ".join(" ".join(text.split()) for text in verdict.sent)
            return (
                f"    says      {verdict.says}",
                f"    sent      {sent}",
                f"    expected  {verdict.expected}",
                f"    seen      {verdict.seen}",
                f"    fix       {verdict.mend}",
            )


def closing_line(verdicts: Sequence[Verdict]) -> str:
    """Return the last line of the text report: how many checks passed, and the names of those that failed."""
    failed = tuple(dict.fromkeys(verdict.name for verdict in verdicts if verdict.outcome == "failed"))
    told = f"{count(verdicts, 'passed')} of {len(verdicts)} passed"
    if skipped := count(verdicts, "not tried"):
        told += f", {skipped} not tried"
    return f"{told}, failed: {', '.join(failed)}" if failed else told


def as_json(command: Sequence[str], verdicts: Sequence[Verdict]) -> dict[str, object]:
    """Return the object for `--json`."""
    return {
        "command": command,
        "passed": count(verdicts, "passed"),
        "failed": count(verdicts, "failed"),
        "not_tried": count(verdicts, "not tried"),
        "duration_s": round(sum(verdict.duration_s for verdict in verdicts), 3),
        "checks": verdicts,
    }


def as_junit(verdicts: Sequence[Verdict]) -> bytes:
    """Return JUnit XML as CI systems read it: one suite per framing, one case per check."""
    from xml.etree import ElementTree

    def attributes(cases: Sequence[Verdict]) -> dict[str, str]:
        return {
            "tests": str(len(cases)),
            "failures": str(count(cases, "failed")),
            "errors": "0",
            "skipped": str(count(cases, "not tried")),
            "time": f"{sum(case.duration_s for case in cases):.3f}",
        }

    root = ElementTree.Element("testsuites", {"name": "compactd conformance", **attributes(verdicts)})
    for framing in dict.fromkeys(verdict.framing for verdict in verdicts):
        cases = [verdict for verdict in verdicts if verdict.framing == framing]
        suite = ElementTree.SubElement(root, "testsuite", {"name": framing, **attributes(cases)})
        for one in cases:
            named = {"classname": _xml(one.law), "name": one.name, "time": f"{one.duration_s:.3f}"}
            case = ElementTree.SubElement(suite, "testcase", named)
            told = _xml("\n".join(line.strip() for line in lines_below(one)))
            if one.outcome == "failed":
                message = _xml(f"expected {one.expected}; seen {one.seen}")
                ElementTree.SubElement(case, "failure", {"message": message, "type": one.name}).text = told
            elif one.outcome == "not tried":
                ElementTree.SubElement(case, "skipped", {"message": _xml(one.seen)})
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def list_checks(checks: Sequence[Check]) -> str:
    """Return the checks by name, each with its framings, the rule that it tests, and that rule in a sentence.
    A rule is named by its section in protocol.md, or by its number in docs/laws.md."""
    return "\n\n".join(
        "\n".join(
            (
                f"{check.name} · framing: {' and '.join(check.framings)} · rule: {check.law}",
                *wrap(check.says, LIST_COLUMNS, initial_indent="    ", subsequent_indent="    "),
            )
        )
        for check in checks
    )


LIST_BEGINS = "<!-- compactd conformance --list -->\n\n```text\n"
LIST_ENDS = "\n```\n"


def with_list(document: str, checks: Sequence[Check]) -> str:
    """Return the Markdown text `document` with a new list of `checks` after the line `LIST_BEGINS`. Raise
    `ValueError` if the document has no such line.
    """
    before, mark, rest = document.partition(LIST_BEGINS)
    _, end, after = rest.partition(LIST_ENDS)
    if not end:
        raise ValueError(
            f"the document has no line {LIST_BEGINS.strip()!r}, after which the list of checks is written"
        )
    return f"{before}{mark}{list_checks(checks)}{end}{after}"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
