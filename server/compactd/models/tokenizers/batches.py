"""Exact counts of many texts: few calls into the tokenizer, in a thread on each core.

tiktoken lets go of the interpreter while it encodes, so threads do count at the same time; but a call for
each short text costs more than the text, and between two threads it costs a wait for the interpreter too.
So texts are joined by a separator that the encoding has as a special token. tiktoken parts what it is given
at special tokens first and encodes what stands between them by itself, so each text has the tokens that it
has alone. It hands over a buffer, 4 bytes a token: the distance of two marks in it is the count of a text.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from time import sleep
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

SEPARATOR = "\x1c\x1d\x1e\x1f"
"""ASCII's four separators. No end of it is also its beginning: where texts are joined by it, it stands
nowhere else unless a text has it whole."""

MARK = 0xFEFEFEFE
"""Its token. Those of the ranks are below 2^18, so their highest byte is none of these."""

BATCH_CHARS = 16 * 1024
"""Counted in one call, about: 1 ms. Threads that share a work end that much apart."""

ALONE_CHARS = 48 * 1024
"""Up to this no helper is asked: the loop counts as much itself (`session.INLINE_BYTES`), 3 ms, and must not
wait for a thread that others keep from its core."""

SHARE_CHARS = 24 * 1024
"""Of more, one thread for each so many. Of 33,000 characters two take 1.4 ms, one 2.0 (2026-11)."""

MOST_THREADS = 4
"""That count at the same time, whoever asks; fewer where the process may use fewer cores."""

TOKEN_BYTES = 4
"""Of the buffer that tiktoken hands over, for each token."""

REST_S = 50e-6
"""Of a helper behind each batch."""

Encode = Callable[[str], bytes]
"""The tokens of a text, 4 bytes each, as this machine orders them; `SEPARATOR` gives `MARK`. Raises what the
tokenizer does."""
CountAlone = Callable[[str], int]
"""Tokens of one text, whatever stands in it."""

Part = tuple[int, str]
"""(index of the text it is of, a part of that text where no token crosses its ends)."""


def count_each(
    parts: Iterator[Part], texts: int, chars: int, encode: Encode, alone: CountAlone, *, threads: int
) -> list[int]:
    """Tokens of each of so many `texts`, which come in `parts` of so many `chars` in all.

    O(chars); in as many threads as there are cores, at most `threads`. Raises what `alone` does.
    """
    work = _Work(parts, encode, alone)
    wanted = 1 if chars <= ALONE_CHARS else chars // SHARE_CHARS + 1
    helpers = _helpers(min(threads, cores(), wanted) - 1, work.help)
    try:
        work.run()
    finally:
        work.stop()
        for helper in helpers:
            if not helper.cancel():
                helper.result()  # raises what stopped it
    totals = [0] * texts
    for index, tokens in work.counted:
        totals[index] += tokens
    return totals


class _Work:
    """Batches that threads take one after the other, and what they counted."""

    def __init__(self, parts: Iterator[Part], encode: Encode, alone: CountAlone) -> None:
        self._batches = _batches(parts)
        self._encode = encode
        self._alone = alone
        self._lock = threading.Lock()
        self._is_stopped = False
        self.counted: list[tuple[int, int]] = []
        """(index of a text, tokens of a part of it), in any order."""

    def run(self) -> None:
        """Counts until nothing is left."""
        while self._step():
            pass

    def help(self) -> None:
        """The same beside another thread, with rests: who waits for a core, as the loop does, gets one."""
        while self._step():
            sleep(REST_S)

    def stop(self) -> None:
        """Leaves what nobody has begun."""
        self._is_stopped = True

    def _step(self) -> bool:
        with self._lock:
            batch = [] if self._is_stopped else next(self._batches, [])
        if not batch:
            return False
        counts = self._counts([text for _, text in batch])
        self.counted += zip([index for index, _ in batch], counts, strict=True)
        return True

    def _counts(self, texts: list[str]) -> list[int]:
        try:
            encoded = self._encode(SEPARATOR.join(texts))
        except BaseException as error:
            if not refuses(error):
                raise
            return [self._alone(text) for text in texts]
        counts = [len(tokens) // TOKEN_BYTES for tokens in encoded.split(_MARK)]
        if len(counts) != len(texts):
            return [self._alone(text) for text in texts]  # one of them has the separator
        return counts


def is_panic(error: BaseException) -> bool:
    """True where the tokenizer broke off: pyo3_runtime.PanicException, which cannot be imported."""
    return type(error).__name__ == "PanicException"


def refuses(error: BaseException) -> bool:
    """True where it was the text that could not be encoded as it is, panic or half a pair of surrogates."""
    return isinstance(error, UnicodeError) or is_panic(error)


_MARK = MARK.to_bytes(TOKEN_BYTES, sys.byteorder)


def _batches(parts: Iterator[Part]) -> Iterator[list[Part]]:
    batch: list[Part] = []
    chars = 0
    for part in parts:
        batch.append(part)
        chars += len(part[1])
        if chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


# --- threads ----------------------------------------------------------------------------------------------


def cores() -> int:
    """How many threads of this process can run at the same time."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_making = threading.Lock()
_made: list[ThreadPoolExecutor] = []
_free = threading.Semaphore(MOST_THREADS - 1)


def _helpers(count: int, run: Callable[[], None]) -> list[Future[None]]:
    """Starts `run` in so many other threads, fewer where somebody else uses them now."""
    helpers: list[Future[None]] = []
    for _ in range(count):
        if not _free.acquire(blocking=False):
            break
        try:
            helper = _pool().submit(run)
        except RuntimeError:  # the interpreter is shutting down
            _free.release()
            break
        helper.add_done_callback(lambda _: _free.release())
        helpers.append(helper)
    return helpers


def _pool() -> ThreadPoolExecutor:
    """Threads that stay: each has to warm up the tokenizer's automata, 2 MB of its own."""
    from concurrent.futures import ThreadPoolExecutor

    with _making:
        if not _made:
            _made.append(ThreadPoolExecutor(MOST_THREADS - 1, thread_name_prefix="compactd-count"))
        return _made[0]
