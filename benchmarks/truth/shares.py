"""Percentiles of a list of errors."""

from __future__ import annotations


def at_share(errors: list[float], share: float) -> float:
    """The relative error that this share of all stays below, in percent."""
    return 100 * sorted(errors)[min(len(errors) - 1, int(share * len(errors)))]
