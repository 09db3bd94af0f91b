"""The weights of the model of bodies, learned from recorded sessions.

Written by `benchmarks/reduce/fit.py`. The order is that of `body_model.INPUTS`.
"""

from __future__ import annotations

WEIGHTS = (
    -0.571,  # constant
    0.590,  # characters of the body
    -0.584,  # characters of the file
    0.301,  # lines of the file
    0.082,  # is a test
    0.360,  # is at the top
    0.113,  # names asked for
    0.528,  # names asked for of late
    0.305,  # names in the newest change
    -0.350,  # names
    -0.793,  # share of comments
    -0.414,  # is indented
    0.097,  # share of names asked for
    -0.222,  # calls before
    0.048,  # no names asked for of late, after many calls
)
