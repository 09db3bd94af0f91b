"""tiktoken, OpenAI's own tokenizer: one text after another, and a batch in two threads.

The vocabulary is read from the file that tiktoken's cache would contain. tiktoken checks its hash itself.
"""

from __future__ import annotations

import tiktoken
from serving import Run, Told, messages_in, pieces, serve

_encoding = tiktoken.get_encoding("o200k_base")  # it cannot count before: part of its start


def count(file: str, keep: int) -> Run:
    """One thread."""
    texts, encode = pieces(messages_in(file)), _encoding.encode_ordinary

    def run() -> Told:
        return {"tokens": sum(len(encode(text)) for text in texts)}

    return run


def count_batch(file: str, keep: int) -> Run:
    """Time tiktoken's own batch function with two threads."""
    texts = pieces(messages_in(file))

    def run() -> Told:
        return {"tokens": sum(map(len, _encoding.encode_ordinary_batch(texts, num_threads=2)))}

    return run


if __name__ == "__main__":
    serve({"count": count, "count_batch": count_batch}, tiktoken.__version__)
