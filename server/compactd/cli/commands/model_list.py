"""`compactd models` without a name: lists the providers or a provider's models, and the context windows that
were learned on this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from compactd.cli.framework.exit_codes import USAGE, CommandError
from compactd.cli.framework.page import Page, one_line, plural
from compactd.cli.inspect.markup import short
from compactd.protocol.wire import ListModelsResult, ModelInfo, ObservedInfo

NUMBER = 10
"""The columns of a number of tokens. The largest known window, `10,000,000`, fits."""

_WIDE = 64
"""The fewest columns that the table of current models needs with all its numbers."""

HINT = "--provider NAME lists its models; `compactd models NAME` shows one model"


def show(page: Page, found: ListModelsResult, provider: str | None) -> None:
    """Print the models of `provider`, or the providers if it is None. Raise `CommandError` if the provider
    has no models.
    """
    if provider is not None and not found.models:
        raise CommandError(
            f"no model of the provider {provider!r} is known.",
            hint="`compactd models --all` lists the providers.",
            exit_code=USAGE,
        )
    if provider is None:
        _summary(page, found)
        return
    served_by = found.models[0].provider
    learned = tuple(one for one in found.observed if one.provider == served_by)
    if page.is_json:
        page.json({"models": found.models, "observed": learned})
        return
    retired = sum(model.retired for model in found.models)
    count = plural(len(found.models), "model")
    page.line(f"{served_by}: {count}{f', {retired:,} of them retired' if retired else ''}")
    page.line(f"{'window':>{NUMBER}}{'input':>{NUMBER + 2}}{'output':>{NUMBER + 2}}  model")
    for model in found.models:
        page.line(_row(model))
    _show_learned(page, learned)


def show_current(page: Page, found: ListModelsResult) -> None:
    """Print the newest model of each family in `CURRENT`."""
    from compactd.cli.commands.models import pricing_of

    models = tuple(_current(found.models))
    count = len({model.provider for model in found.models})
    if page.is_json:
        page.json({"models": models, "known": len(found.models), "observed": found.observed})
        return
    is_wide = not page.is_drawn or page.width >= _WIDE
    heads = ("window", "output", "$ in", "$ out") if is_wide else ("window",)
    page.line("".join(f"{head:>8}" for head in heads) + "  model")
    for model in models:
        pricing = pricing_of(model)
        cells = [short(model.context_window)]
        if is_wide:
            cells.append("-" if model.output_limit is None else short(model.output_limit))
            prices = (None, None) if pricing is None else (pricing.input, pricing.output)
            cells += ["-" if price is None else f"{price:g}" for price in prices]
        name = f"{model.provider}/{model.model}" if is_wide else model.model
        page.line("".join(f"{cell:>8}" for cell in cells) + f"  {one_line(name)}")
    _show_learned(page, found.observed)
    page.line()
    if is_wide:
        page.line("prices in US dollars per million tokens")
    page.line(f"`compactd models NAME` shows one model, --all lists all {count} providers")


def _current(models: Sequence[ModelInfo]) -> Iterator[ModelInfo]:
    from compactd.core.models.aliases import CURRENT, newest
    from compactd.core.models.names import name_key

    by_provider: dict[str, dict[str, ModelInfo]] = {}
    for model in models:
        if not model.retired:
            by_provider.setdefault(model.provider, {})[name_key(model.model)] = model
    for provider, family in CURRENT:
        known = by_provider.get(provider, {})
        key = newest(known, family)
        if key is not None:
            yield known[key]


def _row(model: ModelInfo) -> str:
    """Return a model's row. Numbers come first so that they are aligned whatever the length of the id."""
    limits = (
        f"{'-' if limit is None else f'{limit:,}':>{NUMBER + 2}}"
        for limit in (model.input_limit, model.output_limit)
    )
    notes = ["retired"] if model.retired else []
    if model.confidence != "fact":
        notes.append(model.confidence)
    return f"{model.context_window:>{NUMBER},}{''.join(limits)}  {', '.join((one_line(model.model), *notes))}"


def _summary(page: Page, found: ListModelsResult) -> None:
    models = Counter(model.provider for model in found.models)
    retired = Counter(model.provider for model in found.models if model.retired)
    if page.is_json:
        providers = [
            {"provider": name, "models": count, "retired": retired[name]}
            for name, count in sorted(models.items())
        ]
        page.json({"providers": providers, "models": len(found.models), "observed": found.observed})
        return
    page.line(f"{plural(len(found.models), 'model')} of {plural(len(models), 'provider')}")
    counts = [f"{one_line(name)} {count:,}" for name, count in sorted(models.items())]
    for line in _side_by_side(counts, page.width) if page.is_drawn else counts:
        page.line(line)
    _show_learned(page, found.observed)
    page.line()
    page.line(HINT)


def _side_by_side(words: Sequence[str], columns: int) -> Iterator[str]:
    """Yield lines with as many `words` as fit into `columns`."""
    line = ""
    for word in words:
        longer = f"{line} · {word}" if line else word
        if line and len(longer) > columns:
            yield line
            longer = word
        line = longer
    if line:
        yield line


def _show_learned(page: Page, observed: Sequence[ObservedInfo]) -> None:
    """Print the context windows that were learned from servers, newest last; nothing if there are none."""
    if not observed:
        return
    page.line()
    page.line(f"{plural(len(observed), 'window')} learned from servers; --forget removes them")
    for one in sorted(observed, key=lambda one: one.at):
        when = datetime.fromtimestamp(one.at).strftime("%Y-%m-%d %H:%M")
        name = one.model if one.provider is None else f"{one.provider}/{one.model}"
        page.line(f"{one.window:>{NUMBER},}  {one_line(name)}: {one_line(one.source)}, {when}")
        if one.confirmed:
            until = datetime.fromtimestamp(one.until).strftime("%Y-%m-%d")
            page.line(f"{'':{NUMBER}}  used until {until}, or longer if a server confirms it")
        else:
            page.line(
                f"{'':{NUMBER}}  used only in the session that learned it: {one_line(one.doubt)}", "due"
            )
