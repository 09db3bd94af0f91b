"""What a feature's chance of being written again depends on: data, learned from recorded sessions.

Written by `benchmarks/retention/fit.py`; the inputs are those of `reuse.py`, in its order.
"""

from __future__ import annotations

ATOM_WEIGHTS = (
    -0.92, -1.13, 0.98, 0.18, 0.32, 0.60, -0.72, -0.01, -0.37, 0.03, 0.40,
    1.06, -0.48, -0.01, 1.22, -0.10, 0.72, -0.02, 0.21, 0.30, 0.18, -0.75,
)  # fmt: skip

WORD_WEIGHTS = (
    -0.80, -0.98, 0.98, 0.15, 0.24, 0.39, -0.75, -0.08, -0.32, 0.03, 0.30,
    0.34, -0.35, -0.13, 0.71, -0.18, 0.47, -0.11, 0.45, 0.22, 0.14, -0.54,
)  # fmt: skip

RUN_WEIGHTS = (
    -1.51, -1.32, 1.17, 0.17, 0.28, 1.40, -1.45, 0.88, -0.37, 0.19, 0.46,
    0.62, -0.33, -0.27, 0.38, 0.01, 1.12, -0.08, 0.86, 0.96, 0.22, -1.29,
)  # fmt: skip

LINE_WEIGHTS = (
    -1.60, -0.96, 0.70, 0.20, 0.30, 1.44, -1.44, 0.80, -0.81, 0.29, 0.72,
    -0.10, -0.16, -0.49, -0.32, 0.13, 1.20, -0.11, 0.82, 1.02, 0.07, -1.19,
)  # fmt: skip
