"""Count tokens exactly with OpenAI's encodings. These are packaged with compactd, so no network and no
environment variable is needed.

Nothing is loaded at import. The first count with an encoding loads it, which takes 0.2 to 0.3 s for
o200k_base. tiktoken holds the GIL for about 140 ms of that, in whatever thread it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from compactd.core.tokens.counting import Chars4, Chars4Utf16, Counter, Habits, ProviderCounter, script_aware
from compactd.core.tokens.estimate import SLICE_CHARS, estimate
from compactd.core.tokens.image_rules import picture_rule
from compactd.models.tokenizers.batches import (
    BATCH_CHARS,
    MARK,
    MAX_THREADS,
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
    """The pattern and the special tokens of an encoding. Its ranks (the number of each token) are in a
    packaged file."""

    plain: tuple[str, ...]
    """The first alternatives of the pattern that splits a text. They have no look-ahead."""
    others: tuple[str, ...]
    """The other alternatives of the pattern."""
    special_tokens: dict[str, int]
    """The number of each special token."""
    published: str | None = None
    """The pattern as OpenAI publishes it; None if it is `plain` and `others`, joined by `|`."""

    @property
    def pattern(self) -> str:
        """The pattern as tiktoken publishes it."""
        return self.published or "|".join((*self.plain, *self.others))

    @property
    def quick(self) -> str:
        """An equivalent pattern with which counting takes a quarter less time.

        If a pattern has a look-ahead anywhere, tiktoken's engine (fancy-regex) tries the alternatives one by
        one, each with its own automaton. A group of alternatives without look-ahead becomes one automaton, in
        which the first match wins as before. (tiktoken 0.14.)
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
        # Possessive quantifiers, where backtracking could never help: each class ends where the next begins.
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    ),
}
"""The encodings by name, as in tiktoken_ext.openai_public of tiktoken 0.14.0. A test compares the two."""


class EncodingError(Exception):
    """The error that a packaged encoding file is damaged. compactd must be reinstalled."""


_lock = threading.Lock()
_loaded: dict[str, Encoding] = {}


def load(name: str) -> Encoding:
    """Return the encoding `name`, a key of `SPECS`. The whole process shares one object.

    The first call takes 0.2 to 0.3 s and holds the GIL for half of that, so load the encoding when no session
    waits.
    Raises `EncodingError` if the packaged file is damaged, `KeyError` for another name.
    """
    with _lock:
        if name not in _loaded:
            _loaded[name] = _build(name)
        return _loaded[name]


def is_loaded(name: str) -> bool:
    """Return whether the encoding `name` is loaded, so that `load` returns at once."""
    return name in _loaded


def _folder() -> Path:
    from pathlib import Path

    return Path(__file__).parent.parent / "data" / "encodings"


def _build(name: str) -> Encoding:
    """Read an encoding from its packaged file."""
    from tiktoken import Encoding

    spec = SPECS[name]
    ranks = unpack(name)
    special = {**spec.special_tokens, SEPARATOR: MARK}
    encoding = Encoding(name, pat_str=spec.quick, mergeable_ranks=ranks, special_tokens=special)
    # The encoder has its own copy. Clear this one, which `encoding` also references, to save 14 MB.
    ranks.clear()
    return encoding


def unpack(name: str, folder: Path | None = None) -> dict[bytes, int]:
    """Return the number (rank) of each token of the encoding `name`, from the packaged file or the one in
    `folder`.

    Raises `EncodingError` if the file's hash differs from the one in the manifest.
    """
    import zlib
    from hashlib import sha256

    folder = folder or _folder()
    compressed = (folder / f"{name}.z").read_bytes()
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes(), type=dict[str, dict[str, str]])
    if sha256(compressed).hexdigest() != manifest[name]["sha256"]:
        raise EncodingError(f"the token table of the tokenizer {name} is damaged; reinstall compactd")
    data = zlib.decompress(compressed)
    count = int.from_bytes(data[:4], "big")
    ranks: dict[bytes, int] = {}
    at = 4 + count
    for rank, length in enumerate(data[4 : 4 + count]):
        ranks[data[at : at + length]] = rank
        at += length
    return ranks


class Bpe(ProviderCounter, frozen=True):
    """A counter that uses the encoding `name`. The encoding is loaded at the first text."""

    name: str
    """The encoding's name."""
    exact: bool = True
    """Whether the model really uses the encoding `name`. If not, the counts are only estimates."""

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`. O(text).

        The number is exact up to 64 Ki characters. For a longer text it is exact if the text has line or word
        ends at which it can be cut.
        """
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

    def count_each(self, texts: Sequence[str], threads: int = MAX_THREADS) -> list[int]:
        """Return the number of tokens of each text, as `count` does. Many texts are counted in one call,
        with up to `threads` threads."""
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
    """Yield `text` in the slices of `safe_slices`. A slice is split further where that does not change the
    count."""
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
    """Return the number of tokens of `text`, encoded in slices of at most `size` characters. If `encode`
    panics, the slice is estimated.

    tiktoken 0.14 panics on a run of a million spaces. It holds the GIL while it returns the list of tokens,
    so long lists would block other threads.
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
    """Yield `text` in slices of at most `size` characters, cut where no token can cross, if there is such a
    place.

    Such a place is after a line end, if the next line has words and does not begin with `/`; or else before a
    single space between words. Both are safe for the patterns in `SPECS`.
    """
    start = 0
    while len(text) - start > size:
        end = _safe_cut(text, start, start + size) or start + size
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _safe_cut(text: str, start: int, limit: int) -> int | None:
    """Return the last place after `start` and up to `limit` that no token crosses; None if there is none."""
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
"""The maximum number of line ends, and of spaces, that are examined for a cut. In a text of blank lines or
double spaces, no safe place is found."""

_INDENT = 128
"""How many characters of the next line are searched for its first word."""


def counter_for(estimator: str, tokenizer: str | None, model: str | None = None) -> Counter:
    """Return the counter for the setting `estimator` and a model's `tokenizer` (as in `models/lookup`; None
    if unknown).

    `model` is the model's name, which decides how many tokens an image counts. `chars4` and `chars4_utf16`
    are simple estimates. `tokenizer` and `auto` use the model's own encoding if it is packaged. Otherwise
    `tokenizer` uses o200k_base, which is not exact, and `auto` uses an estimate by the scripts of the text
    (`script_aware`). Raises `KeyError` for another estimator. No encoding is loaded before the first text.
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
