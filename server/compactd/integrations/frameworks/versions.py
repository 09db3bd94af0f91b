"""Whether the installed framework is one that an adapter knows."""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType


@dataclass(frozen=True)
class Framework:
    """A framework, and what its adapter needs of it."""

    package: str
    """The name on PyPI, such as `openai-agents`."""
    extra: str
    """The extra of compactd that installs it."""
    tested: str
    """The versions that the tests run with."""
    modules: tuple[str, ...]
    """Modules that the adapter imports. The first one is given to `lacks`."""
    lacks: Callable[[ModuleType], Iterable[str]]
    """Returns what the first module should have and has not, each as part of a sentence."""

    def check(self) -> None:
        """Raise `ImportError`, which says what to do, if the framework is missing or lacks what the adapter
        uses.
        """
        try:
            found = [importlib.import_module(name) for name in self.modules]
        except ImportError as error:
            raise ImportError(
                f"compactd's adapter needs {self.tested}: pip install 'compactd[{self.extra}]' ({error})"
            ) from error
        missing = tuple(self.lacks(found[0]))
        if missing:
            version = importlib.metadata.version(self.package)
            raise ImportError(
                f"{self.package} {version} has no {', '.join(missing)}. compactd was tested with "
                f"{self.tested}: install that version, or a newer compactd"
            )


def parameters(function: object) -> frozenset[str]:
    """Return the names of a function's parameters; none if it is no function."""
    return frozenset(inspect.signature(function).parameters) if callable(function) else frozenset()
