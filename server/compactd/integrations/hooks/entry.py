"""The two commands that agents run: their options, read without the command line's library."""

from __future__ import annotations

import sys


def hook(arguments: list[str]) -> int:
    """`compactd hook AGENT [--limit CHARS] [--deadline SECONDS]`; always 0."""
    _load_msgspec()
    from compactd.integrations.hooks.hook import DEADLINE_S, MOST_CHARS, Options, main

    agent, given = _read(arguments)
    options = Options(
        deadline_s=min(60.0, max(0.1, given.get("--deadline", DEADLINE_S))),
        most_chars=int(min(1_000_000, max(0, given.get("--limit", MOST_CHARS)))),
    )
    return main(agent, options)


def statusline(arguments: list[str]) -> int:
    """`compactd statusline AGENT`; always 0."""
    _load_msgspec()
    from compactd.integrations.hooks.statusline import main

    return main(_read(arguments)[0])


def _load_msgspec() -> None:
    """Loads msgspec without typing_extensions, which it can do without where `typing` has it all (`_utils` of
    0.22): 10 of its 36 ms (processor time, Python 3.11, 2026-11)."""
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    # "Not to be found", as the import system writes it.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _read(arguments: list[str]) -> tuple[str, dict[str, float]]:
    """(agent, the numbers that were given by their options); what cannot be read is passed over."""
    agent, given = "", dict[str, float]()
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            agent = agent or argument
            continue
        name, equals, value = argument.partition("=")
        try:
            given[name] = float(value if equals else next(rest, ""))
        except ValueError:
            sys.stderr.write(f"compactd: {name} takes a number\n")
    return agent, given
