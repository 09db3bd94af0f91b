"""The model registry as files: the packaged rows, the user's models.toml, and the answers remembered.

Nothing is read before the first question. A user's file that cannot be read never stops a lookup: it is
named in `warnings`, and the packaged rows answer.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from compactd.core.registry import Lookup, Override, Registry, Row

REMEMBERED = 256
"""Answers kept: the models that one process asks for."""


class Catalogue:
    """Answers `models/lookup` and `models/list`. Safe in any thread.

    `user_file` is the user's models.toml, which need not exist:

        [[model]]
        match = "qwen3-coder*"      # an id, provider/id, or either with *
        provider = "ollama"         # only there; may be left out
        context = 32768             # tokens; also input, output

    The first question takes about 25 ms; each file is read once.
    """

    def __init__(self, user_file: Path | None = None) -> None:
        self._user_file = user_file
        self._lock = Lock()
        self._registry: Registry | None = None
        self._answers: dict[tuple[str, str | None, str | None], Lookup] = {}
        self._warnings: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What of the user's file could not be used, for people to read. Empty before the first question."""
        return self._warnings

    def lookup(self, model: str, provider: str | None = None, base_url: str | None = None) -> Lookup:
        """What is known of `model`; a guess of 128000 for one that nobody knows, never an error."""
        asked = (model, provider, base_url)
        with self._lock:
            answer = self._answers.pop(asked, None)
            if answer is None:
                answer = self._opened().lookup(model, provider, base_url)
                if len(self._answers) >= REMEMBERED:
                    del self._answers[next(iter(self._answers))]
            self._answers[asked] = answer
            return answer

    def rows(self, provider: str | None = None) -> tuple[Row, ...]:
        """The packaged rows, or those of one provider, sorted by provider and id."""
        with self._lock:
            return self._opened().rows(provider)

    def _opened(self) -> Registry:
        if self._registry is None:
            from compactd.core.registry import Registry

            overrides, self._warnings = read_overrides(self._user_file)
            self._registry = Registry(read_rows(), overrides)
        return self._registry


def read_rows() -> tuple[Row, ...]:
    """The packaged rows, 128 KiB of lines at a time: no call into C holds the interpreter for 5 ms."""
    from pathlib import Path

    import msgspec

    from compactd.core.registry import Row

    decode = msgspec.json.Decoder(Row).decode_lines
    rows: list[Row] = []
    with (Path(__file__).parent / "data" / "models.jsonl").open("rb") as file:
        while lines := file.readlines(128 * 1024):
            rows += decode(b"".join(lines))
    return tuple(rows)


def read_overrides(path: Path | None) -> tuple[tuple[Override, ...], tuple[str, ...]]:
    """(what models.toml says, what of it could not be used); two empty ones where there is no such file."""
    if path is None or not path.exists():
        return (), ()
    import tomllib

    import msgspec

    from compactd.core.registry import Override

    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        return (), (f"models.toml cannot be read: {error}",)
    tables = document.get("model", [])
    if not isinstance(tables, list):
        return (), ("models.toml: write [[model]], with two brackets",)
    overrides: list[Override] = []
    warnings: list[str] = []
    for number, table in enumerate(tables, 1):
        try:
            override = msgspec.convert(table, Override)
        except msgspec.ValidationError as error:
            warnings.append(f"models.toml: model {number}: {error}")
            continue
        if any(
            limit is not None and limit <= 0 for limit in (override.context, override.input, override.output)
        ):
            warnings.append(f"models.toml: model {number}: context, input and output are above 0")
            continue
        overrides.append(override)
    return tuple(overrides), tuple(warnings)
