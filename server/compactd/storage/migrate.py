"""Journals of older versions, read as if written today.

A journal's first record holds its version `v`. `STEPS[n]` turns one record of version n into one of
version n + 1; the first record's `v` is one of the things it turns. The number of records never changes.
Files of every version there was are in tests/journals; each step is tested on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from compactd.protocol.errors import FormatNotSupported

Step = Callable[[bytes], bytes]
"""One record as it was appended, to the same record a version later."""

STEPS: Mapping[int, Step] = {}
"""Version 1 is the first."""


class Format(Struct, frozen=True):
    """The version that is written, and how to get there from the older ones."""

    version: int
    steps: Mapping[int, Step]

    def steps_from(self, version: int) -> tuple[Step, ...]:
        """What turns a record of `version` into one of ours; empty where it is ours already.

        Raises `FormatNotSupported` for a version that is newer than ours, or that never was.
        """
        if 1 <= version <= self.version:
            return tuple(self.steps[older] for older in range(version, self.version))
        raise FormatNotSupported(
            f"This session was written by a newer version of compactd (format {version}; this one reads "
            f"up to {self.version}). Update compactd to open it; nothing was changed.",
            format=version,
            supported=list(range(1, self.version + 1)),
        )


FORMAT = Format(version=1, steps=STEPS)
"""What this version of compactd writes."""


class _Versioned(Struct, frozen=True):
    v: int


version_of = msgspec.json.Decoder(_Versioned).decode
"""The version that a first record says it is of. Raises `msgspec.DecodeError` where it says none."""


def upgraded(records: Sequence[bytes], steps: Sequence[Step]) -> list[bytes]:
    """`records`, each after all `steps` in their order."""
    done = list(records)
    for step in steps:
        done = [step(record) for record in done]
    return done
