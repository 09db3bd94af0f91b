"""Deprecated alias of the module `compactd.protocol.errors`. Importing it emits a `DeprecationWarning`; the
next release removes the alias.
"""

import warnings

from compactd.protocol.errors import *  # noqa: F403 # pyright: ignore[reportWildcardImportFromLibrary]

warnings.warn(
    "compactd.errors has moved to compactd.protocol.errors; the next release removes the old place",
    DeprecationWarning,
    stacklevel=2,
)
