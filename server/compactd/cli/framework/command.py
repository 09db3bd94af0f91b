"""How a command declares its arguments, options, help text and function. Built on click.

click was chosen because it starts fastest of the frameworks that generate completion for bash, zsh and fish,
and because it has no dependencies. A command's module declares the parameters as values (`Argument`,
`Option`, `Flag`), next to the struct that receives what the user typed.

click changed how a default combines with an option whose value is optional (pallets/click #3030, 8.3,
2026-11). Therefore no option here uses `flag_value`, and `default=None` is never passed to click.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import click
import msgspec
from click.shell_completion import CompletionItem
from msgspec import Struct

from compactd.cli.framework.exit_codes import DONE, USAGE, exit_code_of
from compactd.cli.framework.page import Page, make_encodable
from compactd.cli.framework.pager import page_output

Chosen = TypeVar("Chosen", bound=Struct)
ParseOption = Callable[[str], object]
"""A function that converts the text of an option to its value. It raises `ValueError` with a message for the
user.
"""
Completed = Callable[[str], Sequence[tuple[str, str]]]
"""A function that returns (value, description) of each completion of the typed text."""

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 80, "auto_envvar_prefix": None}


class Argument(click.Argument):
    """A positional argument. `told` is its description in `--help`.

    `is_many`: it takes any number of values. `is_file`: it is a file name, which is passed on unchanged and
    completed by the shell. `read` converts any other value. `completed`: suggests other values.
    """

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
        read: ParseOption = make_encodable,
        completed: Completed | None = None,
    ) -> None:
        super().__init__(
            [name],
            metavar=metavar or name.upper(),
            required=required,
            nargs=-1 if is_many else 1,
            type=click.Choice(choices) if choices else click.STRING,
            callback=_as_it_is if is_file else _parse_callback(read),
            shell_complete=None if choices else _completion_callback(completed, is_file=is_file),
        )
        self.told = told
        self.is_many = is_many

    def make_metavar(self, ctx: click.Context) -> str:
        """Return how the usage line shows the argument: `FILE`, `[NAME]` or `WORDS...`."""
        name = self.metavar or self.name or ""
        return (name if self.required else f"[{name}]") + ("..." if self.is_many else "")


class Option(click.Option):
    """An option with a value: `--name VALUE`. `read` converts the text to the value.

    `field`: the field of the command's options that gets the value, if it is not called like the option.
    `is_many`: the option may be repeated. `is_file`: the value is a file name, which is passed on unchanged.
    `is_model`: the value names a model; the user is told if nobody knows it.
    """

    def __init__(
        self,
        name: str,
        told: str,
        *,
        field: str | None = None,
        metavar: str | None = None,
        read: ParseOption = make_encodable,
        default: object = None,
        required: bool = False,
        is_many: bool = False,
        is_file: bool = False,
        choices: Sequence[str] = (),
        completed: Completed | None = None,
        is_model: bool = False,
    ) -> None:
        super().__init__(
            [name, field or name.lstrip("-").replace("-", "_")],
            help=told,
            metavar=metavar or ("|".join(choices) if choices else "TEXT"),
            required=required,
            multiple=is_many,
            type=click.Choice(choices) if choices else click.STRING,
            callback=_as_it_is if is_file else _parse_callback(read),
            shell_complete=None if choices else _completion_callback(completed, is_file=is_file),
        )
        self.is_model = is_model
        if default is not None:
            # click treats an explicit None as a given value (pallets/click #3030).
            self.default = default


class Flag(click.Option):
    """An option without a value. It is true if `--name` is given."""

    def __init__(self, name: str, told: str, *, also: Sequence[str] = ()) -> None:
        field = name.lstrip("-").replace("-", "_")
        super().__init__([name, *also, field], help=told, is_flag=True, default=False)


JSON = Flag("--json", "print the result as one JSON object")
NO_PAGER = Flag("--no-pager", "print long output directly instead of through $PAGER")


class Command(click.Command):
    """One command. `run` gets the values of the parameters as an instance of `options`, prints to a `Page`
    and returns an exit code.
    """

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
            callback=_run_callback(options, run, is_paged=is_paged),
            params=[*params, *([JSON] if has_json else ()), *([NO_PAGER] if is_paged else ())],
            help=about,
        )
        self.about = about
        self.examples = tuple(examples)
        """(command line, what it does) for each example."""

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: usage, description, arguments, options, examples."""
        _write_help(self, self.about, self.examples, ctx, formatter)


class _NoOptions(Struct, frozen=True):
    """The options of a command that is carried out elsewhere."""


def help_only(
    name: str, *, about: str, params: Sequence[click.Parameter], examples: Sequence[tuple[str, str]]
) -> Command:
    """Return a command of which only the help is used. `__main__` carries the command out, before anything
    else is imported, so only an invalid command line leads here.
    """
    return Command(
        name,
        _NoOptions,
        lambda options, page: USAGE,
        about=about,
        params=params,
        examples=examples,
        has_json=False,
    )


class CommandGroup(click.Group):
    """The command `main` with subcommands. Without a subcommand, `main` is carried out."""

    def __init__(self, main: Command, commands: Sequence[Command]) -> None:
        super().__init__(
            main.name,
            commands=commands,
            context_settings=dict(SETTINGS),
            invoke_without_command=True,
            callback=main.callback,
            params=main.params,
            help=main.about,
            subcommand_metavar="[COMMAND ...]",
        )
        self.about = main.about
        self.examples = main.examples

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help: usage, description, arguments, options, subcommands, examples."""
        _write_help(self, self.about, self.examples, ctx, formatter)


def _run_callback(
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
        models = [values[one.name] for one in ctx.command.params if isinstance(one, Option) and one.is_model]
        with page_output(is_wanted=has_pager):
            if any(models) and not values.get("base_url"):
                from compactd.cli.framework.unknown_model import note_unknown_models

                note_unknown_models([str(model) for model in models if model])
            return exit_code_of(page, lambda: run(chosen, page))

    return act


def _parse_callback(
    read: ParseOption,
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
    """Return the text unchanged: a file name may contain any bytes."""
    return text


def _completion_callback(
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
