"""What a feature's chance of being written again depends on: data, learned from recorded sessions.

Written by `benchmarks/retention/fit.py`; the inputs are those of `reuse.py`, in its order.
"""

from __future__ import annotations

ATOM_WEIGHTS = (
    -0.41, -1.25, 1.03, 0.41, 0.21, 0.71, -0.63, -0.03, -0.52, 0.07, 0.35,
    0.75, -0.36, -0.26, 0.85, -0.08, 0.84, 0.51, -0.54, 0.39, 0.07, -0.89,
)  # fmt: skip
WORD_WEIGHTS = (
    -0.55, -0.99, 0.98, 0.21, 0.19, 0.41, -0.68, 0.03, -0.18, 0.07, 0.24,
    0.41, -0.25, -0.21, 0.37, -0.02, 0.61, 0.21, -0.17, 0.27, 0.06, -0.37,
)  # fmt: skip
RUN_WEIGHTS = (
    -0.39, -1.25, 1.01, 0.50, 0.24, 0.86, -1.18, 1.18, -0.12, 0.27, 0.61,
    0.47, -0.31, -0.65, 0.71, -0.08, 1.76, 0.64, -0.66, 0.81, 0.12, -1.00,
)  # fmt: skip
LINE_WEIGHTS = (
    -0.14, -1.37, 0.66, 0.67, 0.12, -1.57, -0.96, 1.56, -0.50, 0.51, 0.73,
    0.16, -0.15, -0.83, 0.52, -0.06, 1.97, 0.70, -0.21, 0.99, 0.00, -1.64,
)  # fmt: skip
