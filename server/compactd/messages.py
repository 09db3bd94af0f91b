"""The old place of `compactd.protocol.messages`. Importing it warns; the next release removes it."""

import warnings

from compactd.protocol.messages import *  # noqa: F403 # pyright: ignore[reportWildcardImportFromLibrary]

warnings.warn(
    "compactd.messages has moved to compactd.protocol.messages; the next release removes the old place",
    DeprecationWarning,
    stacklevel=2,
)
