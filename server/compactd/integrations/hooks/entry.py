"""The commands `compactd hook` and `compactd statusline`. They parse their options themselves
to start fast.
"""

from __future__ import annotations

import sys

_FLAGS = ("--no-steer", "--ahead", "--observe")
"""Options without a value."""


def hook(arguments: list[str]) -> int:
    """Run `compactd hook AGENT` with its options (`cli/commands/hook.py`). Always return 0."""
    _load_msgspec()
    from compactd.integrations.hooks.hook import DEADLINE_S, MAX_PAYLOAD_CHARS, Options, main

    level, arguments = _without_level(arguments)
    agent, given = _read(arguments)
    if "--ahead" in given:
        import os

        from compactd.integrations.hooks.ahead import serve

        # Starting OpenBLAS's thread pool (numpy 2) takes 40 ms and does not pay off here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return serve(agent, sys.stdin.buffer.read(), os.environ)
    options = Options(
        deadline_s=min(60.0, max(0.1, given.get("--deadline", DEADLINE_S))),
        most_chars=int(min(1_000_000, max(0, given.get("--limit", MAX_PAYLOAD_CHARS)))),
        steers="--no-steer" not in given,
        reduces=level,
        observes="--observe" in given,
    )
    return main(agent, options)


def statusline(arguments: list[str]) -> int:
    """Run `compactd statusline AGENT`. Always return 0."""
    _load_msgspec()
    from compactd.integrations.hooks.statusline import main

    return main(_read(arguments)[0])


def _load_msgspec() -> None:
    """Import msgspec without typing_extensions, which it needs only on older versions of Python (msgspec
    0.22, `_utils`).

    This saves about 10 ms per start.
    """
    name = "typing_extensions"
    if name in sys.modules or "msgspec" in sys.modules:
        return
    # The value that the import system uses for a module that cannot be found.
    sys.modules[name] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401
    finally:
        del sys.modules[name]


def _without_level(arguments: list[str]) -> tuple[str, list[str]]:
    """Return (the level after `--reduce`, empty if tool outputs are not reduced; the other arguments)."""
    for at, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--reduce":
            rest = at + 1 if equals else at + 2
            return value if equals else "".join(arguments[at + 1 : rest]), arguments[:at] + arguments[rest:]
    return "", arguments


def _read(arguments: list[str]) -> tuple[str, dict[str, float]]:
    """Return (agent, numeric options). Ignore what cannot be parsed."""
    agent, given = "", dict[str, float]()
    rest = iter(arguments)
    for argument in rest:
        if not argument.startswith("-"):
            agent = agent or argument
            continue
        if argument in _FLAGS:
            given[argument] = 1
            continue
        name, equals, value = argument.partition("=")
        try:
            given[name] = float(value if equals else next(rest, ""))
        except ValueError:
            sys.stderr.write(f"compactd: the option {name} needs a number; its default is used\n")
    return agent, given
