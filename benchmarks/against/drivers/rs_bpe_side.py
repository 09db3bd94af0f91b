"""rs-bpe, a tokenizer in Rust that counts tokens without creating them. Its wheel has the vocabulary."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from rs_bpe.bpe import openai  # type: ignore[import-not-found]
from serving import Run, Told, messages_in, pieces, serve

_tokenizer = openai.o200k_base()  # it cannot count before: part of its start


def count(file: str, keep: int) -> Run:
    """One thread."""
    texts, counted = pieces(messages_in(file)), _tokenizer.count

    def run() -> Told:
        return {"tokens": sum(map(counted, texts))}

    return run


def count_two(file: str, keep: int) -> Run:
    """Two threads; it keeps the interpreter while it counts."""
    texts, counted = pieces(messages_in(file)), _tokenizer.count
    halves, pool = (texts[::2], texts[1::2]), ThreadPoolExecutor(2)

    def run() -> Told:
        return {"tokens": sum(pool.map(lambda half: sum(map(counted, half)), halves))}

    return run


if __name__ == "__main__":
    serve({"count": count, "count_two": count_two}, version("rs-bpe"))
