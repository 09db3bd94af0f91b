"""Deprecated alias of the module `compactd.protocol.messages`. Importing it emits a `DeprecationWarning`; the
next release removes the alias.
"""

import warnings

from compactd.protocol.messages import *  # noqa: F403 # pyright: ignore[reportWildcardImportFromLibrary]

warnings.warn(
    "compactd.messages has moved to compactd.protocol.messages; the next release removes the old place",
    DeprecationWarning,
    stacklevel=2,
)
