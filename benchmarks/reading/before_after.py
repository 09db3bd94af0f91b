"""Write what `extract` makes of the project's sessions: docs/handover/NAME-SIZE-{before,after}.txt.

`python -m benchmarks.reading.before_after --document` writes the texts of this checkout ("after"). With
`--before CHECKOUT` it also writes those of the code in another checkout. Without `--document`, it writes
nothing and names the texts that differ; the exit code is 1 if there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ROOT / "docs" / "handover"
SESSIONS: Final = {
    "session": ROOT / "examples" / "session.jsonl",
    "migration": ROOT / "examples" / "handover" / "migration.jsonl",
    "travel": ROOT / "examples" / "handover" / "travel.jsonl",
}
"""The sessions by name."""
SIZES: Final = (2_000, 4_000, 8_000)
"""The sizes of the next request, in tokens: the summary and the last messages, which stay word for word."""
TIMEOUT_S: Final = 300.0


def make_texts(name: str, checkout: Path, when: str) -> dict[str, str]:
    """Return the texts that the code in a checkout makes of a session, by the name of their file.

    That code runs in a process of its own. Raises `CalledProcessError` if it fails."""
    done = subprocess.run(
        [sys.executable, "-P", Path(__file__).with_name("summaries.py"), SESSIONS[name], *map(str, SIZES)],
        env={**os.environ, "PYTHONPATH": f"{checkout / 'server'}{os.pathsep}{checkout}"},
        cwd=checkout,
        stdout=subprocess.PIPE,
        timeout=TIMEOUT_S,
        check=True,
    )
    by_size: dict[str, str] = json.loads(done.stdout)
    return {f"{name}-{int(size) // 1_000}k-{when}.txt": f"{text}\n" for size, text in by_size.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading.before_after", description=__doc__)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT", help="a checkout of the code before")
    parser.add_argument("--document", action="store_true", help="write the texts to docs/handover")
    options = parser.parse_args(arguments)
    texts: dict[str, str] = {}
    for name in SESSIONS:
        texts |= make_texts(name, ROOT, "after")
        if options.before is not None:
            texts |= make_texts(name, options.before.resolve(), "before")
    is_different = False
    for file, text in sorted(texts.items()):
        path = PAGES / file
        if not path.exists() or path.read_text("utf-8") != text:
            is_different = True
            print(f"{'written' if options.document else 'differs'}: {file}")
            if options.document:
                path.write_text(text, "utf-8")
    return int(is_different and not options.document)


if __name__ == "__main__":
    sys.exit(main())
