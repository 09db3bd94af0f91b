"""For tests in real editors: long timeouts for busy machines, and a list of what each test saw at the end."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
LONGEST_S = 900
"""Seconds for one test. Each wait in it gives up long before, and says what it waited for."""
PICTURES = ("build/editors", "build/pictures")
WIDTH = 150


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(LONGEST_S))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what each test printed, by editor, and where the pictures are."""
    seen: dict[str, list[pytest.TestReport]] = defaultdict(list)
    for report in terminalreporter.stats.get("passed", []):
        place = Path(report.nodeid.partition("::")[0]).parts
        if place[:2] == ("tests", "editors") and len(place) > 3 and report.when == "call":
            seen[place[2]].append(report)
    if not seen:
        return
    terminalreporter.section("seen in each editor")
    for editor, reports in sorted(seen.items()):
        took_s = sum(report.duration for report in reports)
        terminalreporter.write_line(f"{editor}: {len(reports)} tests, {took_s:.0f} s")
        for report in reports:
            name = report.nodeid.partition("::")[2].removeprefix("test_").replace("_", " ")
            terminalreporter.write_line(f"  {name} ({report.duration:.1f} s)")
            for line in report.capstdout.splitlines():
                cut = line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
                terminalreporter.write_line(f"      {cut}")
    for folder in PICTURES:
        kept = sorted(each for each in (ROOT / folder).rglob("*") if each.suffix in (".png", ".svg"))
        if kept:
            terminalreporter.write_line(f"pictures: {folder} ({len(kept)})")
