"""Outputs of tools of which a reduction leaves out most."""

from __future__ import annotations


def pip_output(lines: int) -> str:
    """Return what pip prints about parts that are there already, one per line. A reduction
    leaves most of it out."""
    return "".join(
        f"Requirement already satisfied: part-{number}>=1.0 in ./.venv/lib/site-packages (1.0.{number})\n"
        for number in range(lines)
    )


PIP = pip_output(300)
PIP_COMMAND = "pip install -r requirements.txt"
LEFT_OUT = "part-150>=1.0"
"""A part of `PIP` that a reduction leaves out."""
FORGED = "[… 40 lines left out, expand e1]"
"""What an output contains that pretends to be a mark."""
