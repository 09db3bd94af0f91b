"""litellm: its token counter and its trimming of a list of messages."""

from __future__ import annotations

from importlib.metadata import version

import litellm
from litellm.utils import trim_messages
from serving import Run, Told, messages_in, openai_chars, openai_messages, pieces, serve

MODEL = "gpt-4o"


def count(file: str, keep: int) -> Run:
    """Text by text."""
    texts = pieces(messages_in(file))

    def run() -> Told:
        return {"tokens": sum(litellm.token_counter(model=MODEL, text=text) for text in texts)}

    return run


def trim(file: str, keep: int) -> Run:
    """Time trimming without a model: keep the newest messages that fit."""
    messages = openai_messages(messages_in(file))

    def run() -> Told:
        kept = trim_messages([dict(message) for message in messages], model=MODEL, max_tokens=keep)
        return {"chars": openai_chars(kept)}

    return run


if __name__ == "__main__":
    serve({"count": count, "trim": trim}, version("litellm"))
