"""The session that every contender gets: the benchmarks' long conversation, cut to a size."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.against.drivers.serving import messages_in, pieces
from benchmarks.conversation import turns


class Workload(Struct, frozen=True, kw_only=True):
    """A session in a file, one message in neutral shape a line."""

    file: Path
    tokens: int
    """About: what was asked for."""
    messages: int
    chars: int
    """The number of characters that a model reads of it."""
    digest: str
    """A hash of the file: equal for the same repository contents and size."""

    @property
    def keep(self) -> int:
        """The number of tokens that a compaction keeps unchanged: a fifth, at most 20,000."""
        return min(20_000, self.tokens // 5)

    @property
    def said(self) -> str:
        """A description for the table."""
        return (
            f"{size(self.tokens)} tokens ({self.messages:,} messages, {self.chars / 1e6:.2f}M characters; "
            f"the SHA-256 of its file begins with {self.digest})"
        )


CHARS_A_TOKEN = 3.3
"""The approximate ratio for this conversation in o200k_base (measured 2026-11: 3.28)."""


def make(folder: Path, tokens: int) -> Workload:
    """Writes the first turns of the long conversation, of about so many tokens. O(tokens)."""
    file = folder / f"session-{tokens}.jsonl"
    digest = sha256()
    held, count = 0.0, 0
    with file.open("wb") as out:
        for turn in turns():
            for message in turn:
                held += sum(map(len, pieces([message])))
                line = msgspec.json.encode(message) + b"\n"
                digest.update(line)
                out.write(line)
                count += 1
            if held >= tokens * CHARS_A_TOKEN:
                break
    return Workload(file=file, tokens=tokens, messages=count, chars=int(held), digest=digest.hexdigest()[:12])


def texts(workload: Workload) -> list[str]:
    """Every text that the counters are given."""
    return pieces(messages_in(str(workload.file)))


def size(tokens: int) -> str:
    """10k, 1M."""
    return f"{tokens / 1e6:g}M" if tokens >= 1_000_000 else f"{tokens / 1e3:g}k"
