"""How a command is declared: what it takes, what its help says, what it does. On `click`.

Why click: of the frameworks that bring completion for bash, zsh and fish it starts the fastest. Above the
bare interpreter a program of one command takes 37 ms of processor time with click 8.5.1, 82 with cyclopts
5.4.0, 199 with typer 0.29.2, which is click and rich (Python 3.11, measured 2026-11). It depends on nothing,
and its parameters are values: a module declares them beside the struct they end in. What changed between its
releases is how flags with values combine with defaults (pallets/click #3030, 8.3): no option here has a
`flag_value`, and none is told that its default is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click
import msgspec
from click.shell_completion import CompletionItem
from msgspec import Struct

from compactd.cli.framework.exit_codes import DONE, acted
from compactd.cli.framework.page import Page, encodable
from compactd.cli.framework.pager import paged

Chosen = TypeVar("Chosen", bound=Struct)
Read = Callable[[str], object]
"""Of the text that was given, the value; raises `ValueError` with what is wrong."""
Completed = Callable[[str], Sequence[tuple[str, str]]]
"""Of the beginning that was typed, (value, what it is) of what it may become."""

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80, "auto_envvar_prefix": None}


class Argument(click.Argument):
    """What is told by its place. `told`: what it is, for `--help`."""

    def __init__(
        self,
        name: str,
        told: str,
        *,
        metavar: str | None = None,
        required: bool = True,
        is_many: bool = False,
        is_file: bool = False,
        choices: Sequence[str] = (),
        completed: Completed | None = None,
    ) -> None:
        super().__init__(
            [name],
            metavar=metavar or name.upper(),
            required=required,
            nargs=-1 if is_many else 1,
            type=click.Choice(choices) if choices else click.STRING,
            callback=_as_it_is if is_file else _reading(encodable),
            shell_complete=None if choices else _completing(completed, is_file=is_file),
        )
        self.told = told
        self.is_many = is_many

    def make_metavar(self, ctx: click.Context) -> str:
        """`FILE`, `[NAME]`, `WORDS...`."""
        name = self.metavar or self.name or ""
        return (name if self.required else f"[{name}]") + ("..." if self.is_many else "")


class Option(click.Option):
    """`--name VALUE`; `read` makes the value of the text. Several names: each means the same."""

    def __init__(
        self,
        name: str,
        told: str,
        *,
        also: Sequence[str] = (),
        field: str | None = None,
        metavar: str | None = None,
        read: Read = encodable,
        default: object = None,
        required: bool = False,
        is_many: bool = False,
        is_file: bool = False,
        choices: Sequence[str] = (),
        completed: Completed | None = None,
    ) -> None:
        super().__init__(
            [name, *also, field or name.lstrip("-").replace("-", "_")],
            help=told,
            metavar=metavar or ("|".join(choices) if choices else "TEXT"),
            required=required,
            multiple=is_many,
            type=click.Choice(choices) if choices else click.STRING,
            callback=_as_it_is if is_file else _reading(read),
            shell_complete=None if choices else _completing(completed, is_file=is_file),
        )
        if default is not None:
            # Not handed over as None: click takes that for a value that was given (pallets/click #3030).
            self.default = default


class Flag(click.Option):
    """`--name`: true where it is given."""

    def __init__(self, name: str, told: str, *, also: Sequence[str] = ()) -> None:
        field = name.lstrip("-").replace("-", "_")
        super().__init__([name, *also, field], help=told, is_flag=True, default=False)


class Command(click.Command):
    """A command: `run` gets what was chosen as the struct `options`, fills a page and gives an exit code."""

    def __init__(
        self,
        name: str,
        options: type[Chosen],
        run: Callable[[Chosen, Page], int],
        *,
        about: str,
        params: Sequence[click.Parameter] = (),
        examples: Sequence[tuple[str, str]] = (),
        has_json: bool = True,
        is_paged: bool = False,
    ) -> None:
        super().__init__(
            name,
            context_settings=dict(SETTINGS),
            callback=_acting(options, run, is_paged=is_paged),
            params=_with_common(params, has_json=has_json, is_paged=is_paged),
            help=about,
        )
        self.about = about
        self.examples = tuple(examples)
        """(command line, what it does) of each."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, what it does, what it takes, examples."""
        _write_help(self, self.about, self.examples, ctx, formatter)


class CommandGroup(click.Group):
    """A command with commands of its own; without one of them, it does what `run` does."""

    def __init__(
        self,
        name: str,
        options: type[Chosen],
        run: Callable[[Chosen, Page], int],
        *,
        about: str,
        commands: Sequence[Command],
        params: Sequence[click.Parameter] = (),
        examples: Sequence[tuple[str, str]] = (),
        is_paged: bool = False,
    ) -> None:
        super().__init__(
            name,
            commands=commands,
            context_settings=dict(SETTINGS),
            invoke_without_command=True,
            callback=_acting(options, run, is_paged=is_paged),
            params=_with_common(params, has_json=True, is_paged=is_paged),
            help=about,
            subcommand_metavar="[COMMAND ...]",
        )
        self.about = about
        self.examples = tuple(examples)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Usage, what it does, what it takes, its commands, examples."""
        _write_help(self, self.about, self.examples, ctx, formatter)


def _with_common(
    params: Sequence[click.Parameter], *, has_json: bool, is_paged: bool
) -> list[click.Parameter]:
    common: list[click.Parameter] = []
    if has_json:
        common.append(Flag("--json", "one JSON object with the same facts"))
    if is_paged:
        common.append(Flag("--no-pager", "print long output at once, without $PAGER"))
    return [*params, *common]


def _acting(
    options: type[Chosen], run: Callable[[Chosen, Page], int], *, is_paged: bool
) -> Callable[..., int]:
    def act(**values: object) -> int:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand is not None:
            return DONE
        above = ctx.parent.params if ctx.parent is not None else {}
        page = Page(is_json=bool(values.pop("json", False) or above.get("json")))
        has_pager = is_paged and not values.pop("no_pager", False)
        chosen = msgspec.convert(values, options)
        with paged(is_wanted=has_pager):
            return acted(page, lambda: run(chosen, page))

    return act


def _reading(
    read: Read,
) -> Callable[[click.Context, click.Parameter, str | tuple[str, ...] | None], object]:
    def value_of(ctx: click.Context, param: click.Parameter, text: str | tuple[str, ...] | None) -> object:
        try:
            if isinstance(text, tuple):
                return tuple(read(one) for one in text)
            return read(text) if isinstance(text, str) else text
        except ValueError as error:
            raise click.BadParameter(str(error), ctx=ctx, param=param) from error

    return value_of


def _as_it_is(ctx: click.Context, param: click.Parameter, text: object) -> object:
    """File names are made of whatever bytes."""
    return text


def _completing(
    completed: Completed | None, *, is_file: bool
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    def complete(ctx: click.Context, param: click.Parameter, begin: str) -> list[CompletionItem]:
        if is_file:
            return [CompletionItem(begin, type="file")]
        return [CompletionItem(value, help=told) for value, told in completed(begin)] if completed else []

    return complete


def _write_help(
    command: click.Command,
    about: str,
    examples: Sequence[tuple[str, str]],
    ctx: click.Context,
    formatter: click.HelpFormatter,
) -> None:
    command.format_usage(ctx, formatter)
    for paragraph in about.strip("\n").split("\n\n"):
        formatter.write("\n")
        if any(line.startswith(" ") for line in paragraph.split("\n")):
            formatter.write(f"{paragraph}\n")
        else:
            formatter.write_text(paragraph)
    params = command.get_params(ctx)
    arguments = [(one.make_metavar(ctx), one.told) for one in params if isinstance(one, Argument)]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    with formatter.section("Options"):
        formatter.write_dl(
            [
                record
                for one in params
                if isinstance(one, click.Option) and (record := one.get_help_record(ctx)) is not None
            ]
        )
    if isinstance(command, click.Group):
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, one.get_short_help_str(60)) for name, one in sorted(command.commands.items())]
            )
    if examples:
        formatter.write("\nExamples:\n")
        for line, told in examples:
            formatter.write(f"  {line}\n      {told}\n")
