"""headroom-ai: its compression of a list of messages, without optional dependencies."""

from __future__ import annotations

from importlib.metadata import version

from headroom import compress
from serving import Run, Told, messages_in, openai_chars, openai_messages, serve

MODEL = "gpt-4o"


def compact(file: str, keep: int) -> Run:
    """Results rewritten, each message kept."""
    messages = openai_messages(messages_in(file))

    def run() -> Told:
        done = compress([dict(message) for message in messages], model=MODEL)
        return {"tokens": done.tokens_after, "chars": openai_chars(done.messages)}

    return run


if __name__ == "__main__":
    serve({"compact": compact}, version("headroom-ai"))
