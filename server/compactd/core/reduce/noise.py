"""Lines of package managers and build tools that only say that work is under way."""

from __future__ import annotations

from typing import Final

from compactd.core.reduce.page import Omission, Page
from compactd.core.text.lazy_patterns import LazyPattern

RULE: Final = "progress"
MIN_LINES: Final = 3

_NOISE: Final = LazyPattern(
    r"\s*(?:"
    + "|".join(
        (
            # pip, uv, poetry (pip 25, uv 0.9, 2026-11).
            r"(?:Collecting|Downloading|Using cached|Requirement already satisfied|Preparing metadata"
            r"|Building wheel"
            r"|Created wheel|Stored in directory|Installing build dependencies|Getting requirements"
            r"|Attempting uninstall|Found existing installation|Uninstalling|Successfully uninstalled)\b",
            r"[+-] [\w.-]+==\S+\s*\Z",
            r"━",
            # npm, pnpm, yarn.
            r"npm (?:warn|WARN) (?:deprecated|EBADENGINE)|npm notice",
            r"Progress: resolved|Packages: \+|\++\s*\Z",
            r"(?:➤ )?YN\d{4}:|warning [^\n]* > ",
            # apt, dpkg, apk, brew.
            r"(?:Get:\d+|Hit:\d+|Ign:\d+|Selecting previously|Preparing to unpack|Unpacking|Setting up)",
            r"Processing triggers",
            r"\(Reading database|\(\d+/\d+\) Installing|==> (?:Downloading|Pouring|Fetching)",
            # cargo, go, mix, gem, composer, Maven, Gradle.
            r"(?:Compiling|Downloaded|Downloading|Checking|Updating|Locking|Adding|Fresh|Blocking) \S+ v?\d",
            r"go: (?:downloading|finding|extracting) ",
            r"==> \S+\s*\Z|Compiling \d+ files? \(|Generated \S+ app",
            r"(?:Fetching|Using|Installing) [\w.-]+ \d",
            r"- (?:Installing|Downloading|Locking) \S+ \(|\[INFO\] (?:Download(?:ing|ed) from|---|\s*\Z)",
            r"> Task :\S+(?: UP-TO-DATE| NO-SOURCE)?\s*\Z",
            # docker build, docker pull.
            r"#\d+ (?:\d+\.\d+ |sha256:|extracting|CACHED|DONE|transferring)",
            r"[0-9a-f]{12}: (?:Pulling|Waiting|Download|Verifying|Extracting|Pull complete|Already exists)",
            # make, ninja, CMake.
            r"make(?:\[\d+\])?: (?:Entering|Leaving) directory",
            r"\[\s*\d+%\] (?:Building|Linking|Built)",
            r"\[\d+/\d+\] (?:Building|Compiling|CC|CXX|Linking)",
            r"-- (?:Found|Looking for|Check(?:ing)?|Performing)\b",
            # Transfers, such as git and curl.
            r"(?:remote: )?(?:Counting|Compressing|Enumerating|Receiving|Resolving|Writing|Unpacking)"
            r" (?:objects|deltas)",
            r"(?:\d{1,3}\s+){2,}[\d.]+[kMG]?\s.*--:--",
        )
    )
    + ")"
)
"""Matches a line about work under way (the programs' own output, 2026-11)."""


def fold_progress(page: Page) -> None:
    """Leave out runs of lines about work under way, in the output of programs. O(characters)."""
    for start, stop in page.runs_of(_NOISE, MIN_LINES):
        page.omit(Omission(start, stop, RULE, "lines of progress left out"))
