"""The weights of the reuse model, learned from recorded sessions: one tuple for each kind of feature.

Written by `benchmarks/retention/fit.py`. The order in each tuple is that of `INPUTS` in
`benchmarks/retention/reuse_inputs.py`.
"""

from __future__ import annotations

ATOM_WEIGHTS = (
    -1.01, -1.26, 1.13, 0.13, 0.39, 0.32, -0.79, -0.14, -0.32, -0.04, 0.37,
    0.97, -0.65, -0.11, 1.15, -0.19, 0.62, -0.02, 0.07, 0.61, 0.19, -0.84,
    0.16, -0.29, 0.00,
)  # fmt: skip

WORD_WEIGHTS = (
    -0.76, -0.84, 0.81, 0.12, 0.24, 0.66, -0.73, 0.15, -0.33, 0.01, 0.33,
    0.38, -0.41, 0.09, 0.81, -0.24, 0.55, -0.10, 0.44, 0.30, 0.16, -0.57,
    -0.29, -0.53, -0.76,
)  # fmt: skip

RUN_WEIGHTS = (
    -1.99, -1.22, 1.01, 0.02, 0.40, 1.29, -1.52, 0.90, -0.30, 0.15, 0.65,
    0.60, -0.48, -0.12, 0.34, -0.04, 1.11, -0.32, 0.59, 1.30, 0.27, -1.40,
    0.00, 0.00, 0.00,
)  # fmt: skip

LINE_WEIGHTS = (
    -1.88, -0.68, 0.64, 0.12, 0.36, 1.38, -1.55, 0.69, -0.51, 0.21, 0.63,
    0.06, -0.43, -0.19, -0.31, 0.12, 1.14, -0.34, 0.29, 1.03, 0.04, -1.19,
    0.05, -0.23, -0.53,
)  # fmt: skip
