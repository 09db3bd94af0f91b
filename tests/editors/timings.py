"""Measures the speed in each editor in one run. Use it on an idle machine.

    python -m tests.editors.timings

Activation, first gauge, a context of 5,000 entries, a key press while a thousand events arrive per second.
The tests that measure a figure print it; none of them fails for being slow.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MEASURING = (
    "nvim/test_nvim_parts.py::test_registration_takes_no_time_and_the_first_gauge_comes_soon",
    "nvim/test_nvim_views.py::test_five_thousand_entries_open_at_once",
    "nvim/test_nvim_views.py::test_a_flood_of_events_comes_to_the_screen_in_few_pieces_and_leaves_time_to_type",
    "emacs/test_emacs_parts.py::test_registration_takes_no_time_and_the_first_gauge_comes_soon",
    "emacs/test_emacs_views.py::test_five_thousand_entries_open_at_once",
    "emacs/test_emacs_views.py::test_a_flood_of_events_comes_to_the_screen_in_few_pieces_and_leaves_time_to_type",
    "vscode/test_vscode.py::test_a_long_context_opens_and_a_thousand_events_a_second_do_not_stutter",
)


def main() -> int:
    """The tests' exit code."""
    tests = [f"tests/editors/{each}" for each in MEASURING]
    return subprocess.run([sys.executable, "-m", "pytest", "-m", "editor", *tests], cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
