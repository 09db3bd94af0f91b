"""Migration of journals: turn records of older versions into records of the current version.

A journal's first record contains its version `v`. `STEPS[n]` turns one record of version n into one of
version n + 1, and also updates `v` in the first record. The number of records never changes.
tests/support/journals has journals of every version, on which each step is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
from msgspec import Struct

from compactd.protocol.errors import FormatNotSupported

MigrationStep = Callable[[bytes], bytes]
"""A function that turns one record, as it was appended, into the same record of the next version."""

STEPS: Mapping[int, MigrationStep] = {}
"""By version, the step to the next version. It is empty, because version 1 is the only one so far."""


class JournalFormat(Struct, frozen=True):
    """The current version, and the steps from older versions."""

    version: int
    steps: Mapping[int, MigrationStep]

    def steps_from(self, version: int) -> tuple[MigrationStep, ...]:
        """Return the steps that turn a record of `version` into a record of the current version. Empty if
        `version` is current.

        Raises `FormatNotSupported` for a version that is newer or never existed.
        """
        if 1 <= version <= self.version:
            return tuple(self.steps[older] for older in range(version, self.version))
        raise FormatNotSupported(
            f"This session was written by a newer version of compactd (format {version}; this one reads "
            f"up to {self.version}). Update compactd to open it; nothing was changed.",
            format=version,
            supported=list(range(1, self.version + 1)),
        )


FORMAT = JournalFormat(version=1, steps=STEPS)
"""The format that this version of compactd writes."""


class _Versioned(Struct, frozen=True):
    v: int


version_of = msgspec.json.Decoder(_Versioned).decode
"""The decoder of the version in a journal's first record. It raises `msgspec.DecodeError` if the record has
no version."""


def upgrade(records: Sequence[bytes], steps: Sequence[MigrationStep]) -> list[bytes]:
    """Return `records` after all `steps` were applied to each record, in order."""
    done = list(records)
    for step in steps:
        done = [step(record) for record in done]
    return done
