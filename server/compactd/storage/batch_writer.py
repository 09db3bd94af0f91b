"""The interface between a journal's queue and what stores its batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol


class WriteFailure(Protocol):
    """Why a writer did not store a batch. Nothing of the batch is stored."""

    @property
    def is_broken(self) -> bool:
        """True if this writer can store nothing more. The journal must be opened again."""
        ...

    @property
    def reason(self) -> str | None:
        """The short name of the error, for `data.reason`."""
        ...

    def sentence(self, doing: str) -> str:
        """Return an error message for the user: what failed (`doing`), why, and what to do."""
        ...


class BatchWriter(Protocol):
    """What stores the batches of one journal. Its methods block. Only one thread at a time calls them."""

    @property
    def size_bytes(self) -> int:
        """The size in bytes of the stored records."""
        ...

    def write(self, first_seq: int, appended: Sequence[bytes]) -> WriteFailure | None:
        """Store records, all or none. `first_seq` is the `seq` of the first one. Return the failure, or
        None. Without records, only find out whether another process has taken the session over.
        """
        ...

    def listen(self, on_doubt: Callable[[], None]) -> None:
        """Call `on_doubt`, in any thread, when another process may have taken the session over. `write`
        finds out whether it has.
        """
        ...

    def replace(self, changes: Mapping[int, bytes]) -> WriteFailure | None:
        """Replace the bytes of stored records, by their `seq`, all or none. Return the failure, or None."""
        ...

    def close(self, *, remove: bool = False) -> None:
        """Release the session for other writers. With `remove`, no record was ever stored: leave nothing.

        After a failure with `is_broken`, this is called on the event loop and must not block for long.
        """
        ...
