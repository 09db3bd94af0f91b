"""Exact counting with OpenAI's own ranks, packed with this program: no network, no environment.

Nothing is loaded at import. The first count with an encoding loads it: 0.2 to 0.3 s for o200k_base, of
which tiktoken holds the interpreter for about 140 ms in whatever thread it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from compactd.core.tokens.counting import Chars4, Chars4Utf16, Counter, Habits, Provided, script_aware
from compactd.core.tokens.estimate import SLICE_CHARS, estimate
from compactd.core.tokens.image_rules import picture_rule
from compactd.models.tokenizers.batches import (
    BATCH_CHARS,
    MARK,
    MOST_THREADS,
    SEPARATOR,
    TOKEN_BYTES,
    count_each,
    is_panic,
    refuses,
)

if TYPE_CHECKING:
    from pathlib import Path

    from tiktoken import Encoding


class Spec(Struct, frozen=True):
    """What an encoding is beside its ranks."""

    plain: tuple[str, ...]
    """How a text is split before bytes are merged: the first alternatives, which need no look ahead."""
    others: tuple[str, ...]
    special_tokens: dict[str, int]
    published: str | None = None
    """How the pattern is written elsewhere, where that is not these alternatives one after the other."""

    @property
    def pattern(self) -> str:
        """As tiktoken has it."""
        return self.published or "|".join((*self.plain, *self.others))

    @property
    def quick(self) -> str:
        """What splits every text in the same way in less time: a quarter less for all of counting.

        Where a pattern looks ahead anywhere, tiktoken's engine (fancy-regex) tries alternatives one by one,
        each in an automaton of its own. A group of those that need no look ahead is one automaton, in which
        the first that fits wins as before. (Measured 2026-11, tiktoken 0.14.)
        """
        return f"(?:{'|'.join(self.plain)})|{'|'.join(self.others)}"


SPECS = {
    "o200k_base": Spec(
        (
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
            r"\s*[\r\n]+",
        ),
        (r"\s+(?!\S)", r"\s+"),
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
    "cl100k_base": Spec(
        (
            r"'(?i:[sdmt]|ll|ve|re)",
            r"[^\r\n\p{L}\p{N}]?\p{L}+",
            r"\p{N}{1,3}",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*",
            r"\s+$",
            r"\s*[\r\n]",
        ),
        (r"\s+(?!\S)", r"\s"),
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
        # Possessive where nothing that was taken could be given back: each class ends where the next begins.
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}
"""By name, as tiktoken_ext.openai_public of tiktoken 0.14.0 has them; a test compares them."""


class EncodingError(Exception):
    """A packed rank file is not the one this version was built with. Install the package again."""


_lock = threading.Lock()
_loaded: dict[str, Encoding] = {}


def load(name: str) -> Encoding:
    """The encoding `name`, a key of `SPECS`; the same object for the whole process.

    The first call for a name takes 0.2 to 0.3 s, half of it holding the interpreter: make it where no
    session waits. Raises `EncodingError` if the packed file is not ours, `KeyError` for another name.
    """
    with _lock:
        if name not in _loaded:
            _loaded[name] = _build(name)
        return _loaded[name]


def is_loaded(name: str) -> bool:
    """True if `load(name)` would answer at once."""
    return name in _loaded


def _folder() -> Path:
    from pathlib import Path

    return Path(__file__).parent.parent / "data" / "encodings"


def _build(name: str) -> Encoding:
    from tiktoken import Encoding

    spec = SPECS[name]
    ranks = unpack(name)
    special = {**spec.special_tokens, SEPARATOR: MARK}
    encoding = Encoding(name, pat_str=spec.quick, mergeable_ranks=ranks, special_tokens=special)
    # The encoder has its own copy; ours, which `encoding` holds too, would cost 14 MB for nothing.
    ranks.clear()
    return encoding


def unpack(name: str, folder: Path | None = None) -> dict[bytes, int]:
    """Token → rank of the packed encoding `name`, as packaged or in `folder`.

    Raises `EncodingError` where the file's hash is not the one it was built with.
    """
    import zlib
    from hashlib import sha256

    folder = folder or _folder()
    compressed = (folder / f"{name}.z").read_bytes()
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=dict[str, dict[str, str]])
    if sha256(compressed).hexdigest() != manifest[name]["sha256"]:
        raise EncodingError(f"the ranks of {name} are damaged; install compactd again")
    data = zlib.decompress(compressed)
    count = int.from_bytes(data[:4], "big")
    ranks: dict[bytes, int] = {}
    at = 4 + count
    for rank, length in enumerate(data[4 : 4 + count]):
        ranks[data[at : at + length]] = rank
        at += length
    return ranks


class Bpe(Provided, frozen=True):
    """A counter that encodes with `encoding`, loading it at the first text."""

    name: str
    """Of the encoding."""
    exact: bool = True
    """False where the model's own tokenizer is another."""

    def count(self, text: str) -> int:
        """Tokens of `text`. Exact up to 64 Ki characters, and beyond wherever lines or words end; O(text)."""
        if len(text) > BATCH_CHARS:
            return self.count_each((text,))[0]
        if not text:
            return 0
        encoding = load(self.name)
        try:
            tokens = memoryview(encoding._core_bpe.encode_to_tiktoken_buffer(text, _NOTHING))
        except BaseException as error:
            if not refuses(error):
                raise
            return count_with(encoding.encode_ordinary, text)
        return tokens.nbytes // TOKEN_BYTES

    def count_each(self, texts: Sequence[str], threads: int = MOST_THREADS) -> list[int]:
        """Tokens of each of `texts`, as `count` gives them: many in one call, and in a thread on each core,
        `threads` at most."""
        encoding = load(self.name)
        ordinary, joined = encoding.encode_ordinary, encoding._core_bpe.encode_to_tiktoken_buffer
        parts = ((at, part) for at, text in enumerate(texts) for part in _parts(text))
        return count_each(
            parts,
            len(texts),
            sum(map(len, texts)),
            lambda text: bytes(joined(text, _SPECIAL)),
            lambda text: count_with(ordinary, text),
            threads=threads,
        )


_NOTHING: frozenset[str] = frozenset()
_SPECIAL = frozenset((SEPARATOR,))


def _parts(text: str) -> Iterator[str]:
    """`text` in the slices that `count_with` makes, each in smaller parts where that changes nothing."""
    if len(text) <= BATCH_CHARS:
        if text:
            yield text
        return
    for piece in safe_slices(text):
        start = 0
        while len(piece) - start > BATCH_CHARS:
            end = _safe_cut(piece, start, start + BATCH_CHARS)
            if end is None:
                break
            yield piece[start:end]
            start = end
        yield piece[start:]


def count_with(encode: Callable[[str], list[int]], text: str, size: int = SLICE_CHARS) -> int:
    """Tokens of `text`, `size` characters at a time; a slice on which `encode` panics is estimated instead.

    tiktoken 0.14 panics on a run of a million spaces; it releases the interpreter while it encodes, not
    while it hands over the list.
    """
    total = 0
    for part in safe_slices(text, size):
        try:
            total += len(encode(part))
        except BaseException as panic:
            if not is_panic(panic):
                raise
            total += round(estimate(part))
    return total


def safe_slices(text: str, size: int = SLICE_CHARS) -> Iterator[str]:
    """`text` in pieces of at most `size` characters, cut where no token can cross if there is such a place.

    That is where a line ends and the next one has words and does not begin with `/`, else before a single
    space between words. Both hold for the patterns in `SPECS`.
    """
    start = 0
    while len(text) - start > size:
        end = _cut(text, start, start + size)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _cut(text: str, start: int, limit: int) -> int:
    """The last safe place in `text` after `start` and up to `limit`; `limit` where there is none."""
    end = _safe_cut(text, start, limit)
    return limit if end is None else end


def _safe_cut(text: str, start: int, limit: int) -> int | None:
    """The same, and none where there is none."""
    end = limit
    for _ in range(_TRIES):
        end = text.rfind("\n", start, end)
        if end < 0:
            break
        following = text[end + 1 : end + 1 + _INDENT].lstrip(" \t")
        if following and not following[0].isspace() and following[0] != "/":
            return end + 1
    end = limit
    for _ in range(_TRIES):
        end = text.rfind(" ", start + 1, end)
        if end < 0:
            break
        if not text[end - 1].isspace() and not text[end + 1].isspace():
            return end
    return None


_TRIES = 256
"""Places looked at for each kind of cut: a text of blank lines or of double spaces is cut anywhere."""

_INDENT = 128
"""How far the next line is looked at for its first word."""


def counter_for(estimator: str, tokenizer: str | None, model: str | None = None) -> Counter:
    """The counter of an estimator for a model's `tokenizer`, as `models/lookup` tells it; none if unknown.
    `model`, its name, tells what images cost it.

    `chars4`, `chars4_utf16`: as they are. `tokenizer`: the model's own ranks where we have them, else
    o200k_base, not exact. `auto`: the model's own ranks, else the script-aware estimate × the family's
    factor. Raises `KeyError` for another estimator. Loads nothing: a counter does so at its first text.
    """
    match estimator:
        case "chars4":
            return Chars4()
        case "chars4_utf16":
            return Chars4Utf16()
        case "auto" | "tokenizer" if tokenizer is not None and tokenizer in SPECS:
            return Bpe(tokenizer, habits=Habits(keeps_thinking=False, pictures=picture_rule(model)))
        case "tokenizer":
            return Bpe("o200k_base", exact=False, habits=Habits(pictures=picture_rule(model)))
        case "auto":
            return script_aware(tokenizer, model)
    raise KeyError(estimator)
