"""Arguments and options that several commands declare in the same way."""

from __future__ import annotations

from compactd.cli.framework import sizes
from compactd.cli.framework.command import Argument, Flag, Option
from compactd.cli.framework.complete import models

FILE = Argument("file", "the session file; - is standard input", is_file=True)
MODEL = Option(
    "--model",
    "the session's model, if the file does not name it",
    metavar="ID",
    completed=models,
    is_model=True,
)
WINDOW = Option("--window", "the model's window in tokens", read=sizes.tokens, metavar="N")
BASE_URL = Option("--base-url", "the address that serves the model, if not the provider's", metavar="URL")
FORCE = Flag("--force", "replace an existing file without asking")
"""The flag of every command that writes to a file which the user names."""


def size_options(target: str, keep_recent: str, keep_messages: str) -> tuple[Option, ...]:
    """Return the options for the size after a compaction, of which one can be given. The arguments are their
    descriptions.
    """
    return (
        Option("--target", target, read=sizes.tokens, metavar="N"),
        Option("--keep-recent", keep_recent, read=sizes.tokens, metavar="N"),
        Option("--keep-messages", keep_messages, read=sizes.messages, metavar="N"),
    )


def model_param(model: str, base_url: str | None) -> object:
    """Return the param `model` of `session/start` for the options `--model` and `--base-url`."""
    return model if base_url is None else {"id": model, "base_url": base_url}
