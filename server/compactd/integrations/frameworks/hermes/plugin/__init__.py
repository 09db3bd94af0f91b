"""The plugin that `compactd install hermes` copies into Hermes' folder `plugins/compactd`.

compactd must be installed in the Python that runs Hermes. Otherwise Hermes shows the error below for this
plugin, and goes on with its own compressor.
"""

try:
    from compactd.integrations.frameworks.hermes import register
except ModuleNotFoundError as error:
    if error.name != "compactd":
        raise
    import sys

    raise ImportError(
        f"compactd is not installed in Hermes' Python, {sys.executable}: docs/hermes.md says how"
    ) from error

__all__ = ["register"]
