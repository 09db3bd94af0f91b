"""rs-bpe, a tokenizer in Rust that can count without making the tokens; its ranks are in its wheel."""

from __future__ import annotations

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


if __name__ == "__main__":
    serve({"count": count}, version("rs-bpe"))
