"""Read a file or standard input whose content may be any bytes, such as a text or an error."""

from __future__ import annotations

import sys
from pathlib import Path

from compactd.cli.framework.exit_codes import USAGE, CommandError
from compactd.cli.framework.page import ask_for_text, one_line

STANDARD_INPUT = "-"


def read_input(name: str, max_bytes: int) -> bytes:
    """Return the bytes of the file `name`, or of standard input for `-`: at most `max_bytes` and one more, so
    that the caller sees if there are too many. Raise `CommandError` if it cannot be read.
    """
    shown = shown_name(name)
    try:
        if name == STANDARD_INPUT:
            ask_for_text()
            return sys.stdin.buffer.read(max_bytes + 1)
        with Path(name).open("rb") as file:
            return file.read(max_bytes + 1)
    except FileNotFoundError as error:
        raise CommandError(f"cannot read {shown}: there is no such file.", exit_code=USAGE) from error
    except IsADirectoryError as error:
        raise CommandError(
            f"cannot read {shown}: it is a folder.", hint="Give a file.", exit_code=USAGE
        ) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "that is not a file name"
        raise CommandError(
            f"cannot read {shown}: {why}.", hint="Check its permissions, or copy it."
        ) from error


def shown_name(name: str) -> str:
    """Return the name for people: `standard input` for `-`, otherwise the file's name on one line."""
    return "standard input" if name == STANDARD_INPUT else one_line(name)
