"""Count the tokens of many texts exactly, with few tokenizer calls in several threads.

tiktoken releases the GIL while it encodes, so threads can count in parallel. But one call per short text
would cost more than encoding the text, and each call may have to wait for the GIL. So texts are joined by a
separator that is registered as a special token. tiktoken first splits its input at special tokens and encodes
the parts separately, so each text has the same tokens as it has alone. tiktoken returns a buffer with 4 bytes
per token. The number of tokens between two separators in the buffer is the count of one text.
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
"""The text between joined texts: the four ASCII separator characters. It does not overlap with itself, so
it occurs only between the texts, unless a text contains all of it."""

MARK = 0xFEFEFEFE
"""The token number of the separator. All other tokens are below 2^18, so their bytes cannot look like it."""

BATCH_CHARS = 16 * 1024
"""About how many characters are counted in one tokenizer call. Such a call takes 1 ms."""

MAX_SINGLE_THREAD_CHARS = 48 * 1024
"""Up to this many characters, no helper thread is used. The event loop counts up to this much itself
(`session.INLINE_BYTES`), in 3 ms. It must not wait for a thread that may not get a core."""

SHARE_CHARS = 24 * 1024
"""Texts with more than `MAX_SINGLE_THREAD_CHARS` get one helper thread per this many characters."""

MAX_THREADS = 4
"""The maximum number of threads that count at the same time in the whole process."""

TOKEN_BYTES = 4
"""The bytes of one token in tiktoken's buffer."""

HELPER_PAUSE_S = 50e-6
"""The pause of a helper thread after each batch, in seconds, in which other threads get a core."""

Encode = Callable[[str], bytes]
"""A function that returns the tokens of a text, 4 bytes each in native byte order. `SEPARATOR` becomes
`MARK`. It raises what the tokenizer raises."""
CountAlone = Callable[[str], int]
"""A function that returns the number of tokens of one text, whatever the text contains."""

TextPart = tuple[int, str]
"""(index of a text, a part of that text). Texts are split into parts only where no token crosses."""


def count_each(
    parts: Iterator[TextPart], texts: int, chars: int, encode: Encode, alone: CountAlone, *, threads: int
) -> list[int]:
    """Return the number of tokens of each text. `parts` are the parts of all texts; `texts` is the number of
    texts, and `chars` the number of their characters.

    `encode` encodes many parts at once. If it refuses them, `alone` counts each part. O(chars), with one
    thread per core, at most `threads`. Raises what `alone` raises.
    """
    work = _Work(parts, encode, alone)
    wanted = 1 if chars <= MAX_SINGLE_THREAD_CHARS else chars // SHARE_CHARS + 1
    helpers = _helpers(min(threads, cores(), wanted) - 1, work.help)
    try:
        work.run()
    finally:
        work.stop()
        for helper in helpers:
            if not helper.cancel():
                helper.result()  # raises the helper's error, if any
    totals = [0] * texts
    for index, tokens in work.counted:
        totals[index] += tokens
    return totals


class _Work:
    """The batches of one count, which several threads take one by one, and their results."""

    def __init__(self, parts: Iterator[TextPart], encode: Encode, alone: CountAlone) -> None:
        self._batches = _batches(parts)
        self._encode = encode
        self._alone = alone
        self._lock = threading.Lock()
        self._is_stopped = False
        self.counted: list[tuple[int, int]] = []
        """(index of a text, tokens of one of its parts), in any order."""

    def run(self) -> None:
        """Count batches until none is left."""
        while self._step():
            pass

    def help(self) -> None:
        """Count batches alongside another thread until none is left. Pause after each batch, so that waiting
        threads such as the event loop get a core."""
        while self._step():
            sleep(HELPER_PAUSE_S)

    def stop(self) -> None:
        """Drop the batches that no thread has begun."""
        self._is_stopped = True

    def _step(self) -> bool:
        """Count the next batch. Return false if there is none."""
        with self._lock:
            batch = [] if self._is_stopped else next(self._batches, [])
        if not batch:
            return False
        counts = self._counts([text for _, text in batch])
        self.counted += zip([index for index, _ in batch], counts, strict=True)
        return True

    def _counts(self, texts: list[str]) -> list[int]:
        """Return the number of tokens of each of `texts`. Count them together, or one by one if that is
        not possible."""
        try:
            encoded = self._encode(SEPARATOR.join(texts))
        except BaseException as error:
            if not refuses(error):
                raise
            return [self._alone(text) for text in texts]
        counts = [len(tokens) // TOKEN_BYTES for tokens in encoded.split(_MARK)]
        if len(counts) != len(texts):
            return [self._alone(text) for text in texts]  # one of the texts contains the separator
        return counts


def is_panic(error: BaseException) -> bool:
    """Return whether the tokenizer panicked. The class is pyo3_runtime.PanicException, which cannot be
    imported."""
    return type(error).__name__ == "PanicException"


def refuses(error: BaseException) -> bool:
    """Return whether the tokenizer could not encode the text as it is: it panicked, or the text has a lone
    surrogate."""
    return isinstance(error, UnicodeError) or is_panic(error)


_MARK = MARK.to_bytes(TOKEN_BYTES, sys.byteorder)


def _batches(parts: Iterator[TextPart]) -> Iterator[list[TextPart]]:
    """Yield lists of parts with about `BATCH_CHARS` characters each."""
    batch: list[TextPart] = []
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
    """Return the number of threads of this process that can run at the same time."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_making = threading.Lock()
_pools: list[ThreadPoolExecutor] = []
_free = threading.Semaphore(MAX_THREADS - 1)


def _helpers(count: int, run: Callable[[], None]) -> list[Future[None]]:
    """Run `run` in `count` helper threads, or in fewer if other callers use them. Return their futures."""
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
    """Return the thread pool. It is created once and kept, because each new thread builds its own copy of the
    tokenizer's automata (2 MB)."""
    from concurrent.futures import ThreadPoolExecutor

    with _making:
        if not _pools:
            _pools.append(ThreadPoolExecutor(MAX_THREADS - 1, thread_name_prefix="compactd-count"))
        return _pools[0]
