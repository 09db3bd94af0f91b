"""`compactd count`: counts the tokens, characters and words of texts and session files, for a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from msgspec import Struct

from compactd.cli.framework.command import Argument, Command, Flag
from compactd.cli.framework.exit_codes import DONE, FAILED, USAGE, CommandError
from compactd.cli.framework.model_facts import full_model_name
from compactd.cli.framework.options import BASE_URL, MODEL
from compactd.cli.framework.page import Page, one_line, plural, print_notes
from compactd.cli.framework.progress import ProgressSpinner
from compactd.cli.framework.read_input import read_input, shown_name
from compactd.client import Client

if TYPE_CHECKING:
    from compactd.core.tokens.counting import Counter
    from compactd.protocol.wire import LookupResult

ABOUT = """\
Counts the tokens, characters and words of texts: of files, or of standard input without
FILE. With --model, the model's own tokenizer counts if compactd has it, and the share of
the model's window is shown. Otherwise the number of tokens is an estimate.

Of a session file of an agent, the messages are counted, also those that were compacted
away, and not the file's JSON. `compactd inspect` shows what is in the context.
"""

MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb": "utf-8-sig"}
"""The first two bytes of a text -> its encoding."""

_HEAD_BYTES = 8192
_LABEL = 12
_NARROW = 64
"""Below this many columns, the table shows no characters and words."""


class Options(Struct, frozen=True, kw_only=True):
    """The command's options."""

    file: tuple[str, ...]
    model: str | None
    base_url: str | None
    plain: bool


class Counted(Struct, frozen=True, kw_only=True):
    """The sizes of one text."""

    file: str
    tokens: int = 0
    characters: int = 0
    words: int = 0
    messages: int | None = None
    """The number of messages of a session file; None for a text."""
    format: str | None = None
    """The format of a session file."""
    exact: bool = False
    """Whether the model's own tokenizer counted, and nothing but text."""
    error: str = ""
    """Why the file could not be counted."""


def run(options: Options, page: Page) -> int:
    """Count each file and print the sizes."""
    names = options.file or ("-",)
    if names == ("-",) and sys.stdin.isatty():
        raise CommandError("no text was given.", hint="Name a FILE, or pipe a text in.", exit_code=USAGE)
    found = _look_up(options)
    from compactd.models.tokenizers.counters import counter_for

    counter = counter_for(
        "auto", None if found is None else found.tokenizer, None if found is None else found.model
    )
    counted: list[Counted] = []
    notes: list[str] = []
    with ProgressSpinner("counting") as spinner:
        for name in names:
            spinner.set_text(f"counting {one_line(name)}")
            try:
                counted.append(_count(name, counter, is_plain=options.plain, notes=notes))
            except CommandError as error:
                if len(names) == 1:
                    raise
                counted.append(Counted(file=name, error=error.message))
    if page.is_json:
        page.json(_facts(counted, counter, found))
    elif len(counted) == 1:
        _show_one(page, counted[0], counter, found)
    else:
        _show_all(page, counted, counter, found)
    print_notes([*notes, *(one.error.rstrip(".") for one in counted if one.error)])
    return FAILED if any(one.error for one in counted) else DONE


def _look_up(options: Options) -> LookupResult | None:
    if options.model is None:
        return None
    with Client() as client:
        return client.models_lookup(model=options.model, base_url=options.base_url)


# --- counting ---------------------------------------------------------------------------------------


def _count(name: str, counter: Counter, *, is_plain: bool, notes: list[str]) -> Counted:
    """Return the sizes of the file `name`. Add to `notes`. Raise `CommandError` if it cannot be counted."""
    data = _read(name)
    session = None if is_plain else _count_session(name, data, counter)
    if session is not None:
        return session
    encoding = MARKS.get(data[:2], "utf-8")
    if encoding != "utf-16" and b"\0" in data[:_HEAD_BYTES]:
        raise CommandError(
            f"cannot count {shown_name(name)}: it looks binary.", hint="Give a text or a session file."
        )
    text = data.decode(encoding, "replace")
    if (wrong := text.count("\ufffd") - data.count(b"\xef\xbf\xbd")) > 0:
        notes.append(f"{shown_name(name)} is not valid UTF-8 at {plural(wrong, 'place')}")
    return Counted(
        file=name,
        tokens=counter.count(text),
        characters=len(text),
        words=len(text.split()),
        exact=counter.exact,
    )


def _count_session(name: str, data: bytes, counter: Counter) -> Counted | None:
    """Return the sizes of a session file's messages; None if it is no session file."""
    from compactd.core.tokens.counting import is_text_only, messages_tokens
    from compactd.formats.files.detect import detect, read
    from compactd.protocol.errors import CompactdError
    from compactd.session.search import searchable_texts

    try:
        format = detect(data)
        file = None if format is None else read(data, format)
    except CompactdError:
        return None
    if file is None or not file.messages:
        return None
    messages = [message for message, _ in file.messages]
    texts = [text for message in messages for text in searchable_texts(message.content)]
    return Counted(
        file=name,
        tokens=sum(messages_tokens(messages, counter)),
        characters=sum(map(len, texts)),
        words=sum(len(text.split()) for text in texts),
        messages=len(messages),
        format=file.format,
        exact=counter.exact and all(map(is_text_only, messages)),
    )


def _read(name: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    from compactd.formats.files.source import FILE_BYTES

    data = read_input(name, FILE_BYTES)
    if len(data) > FILE_BYTES:
        raise CommandError(
            f"{shown_name(name)} is larger than {FILE_BYTES // 1024**2} MiB.",
            hint="Split it, and count the parts.",
        )
    return data


# --- showing ----------------------------------------------------------------------------------------


def _facts(counted: list[Counted], counter: Counter, found: LookupResult | None) -> dict[str, object]:
    tokens = sum(one.tokens for one in counted)
    return {
        "tokens": tokens,
        "characters": sum(one.characters for one in counted),
        "words": sum(one.words for one in counted),
        "exact": all(one.exact for one in counted if not one.error),
        "method": counter.name,
        "model": None if found is None else full_model_name(found),
        "window": None if found is None else found.context_window,
        "window_confidence": None if found is None else found.confidence,
        "share": None if found is None else tokens / found.context_window,
        "files": counted,
    }


def _how(*, is_exact: bool, counter: Counter, found: LookupResult | None) -> str:
    """Return how the tokens were counted, in a few words."""
    if is_exact:
        return f"exact ({counter.name})"
    if found is None:
        return f"an estimate ({counter.name}); --model NAME counts for one model"
    return f"an estimate ({counter.name})"


def _show_one(page: Page, one: Counted, counter: Counter, found: LookupResult | None) -> None:
    mark = "" if one.exact else "~"
    rows: list[tuple[str, str, str]] = [
        ("tokens", f"{mark}{one.tokens:,}", _how(is_exact=one.exact, counter=counter, found=found)),
        ("characters", f"{one.characters:,}", "" if one.messages is None else _of_session(one)),
        ("words", f"{one.words:,}", ""),
    ]
    if found is not None:
        rows.append(("share", _percent(one.tokens, found), _window_text(found)))
    columns = max(len(number) for _, number, _ in rows)
    for label, number, text in rows:
        is_doubtful = label == "share" and found is not None and found.confidence == "guess"
        line = f"{number:>{columns}}   {text}".rstrip()
        page.row(label, line, "due" if is_doubtful else "", columns=_LABEL)


def _window_text(found: LookupResult) -> str:
    doubt = "?" if found.confidence == "guess" else ""
    return f"of the window of {full_model_name(found)}, {found.context_window:,}{doubt} tokens"


def _of_session(one: Counted) -> str:
    from compactd.formats.files.session_formats import title_of

    return (
        f"of {plural(one.messages or 0, 'message')} ({title_of(one.format or '')}); --plain counts the file"
    )


def _show_all(page: Page, counted: list[Counted], counter: Counter, found: LookupResult | None) -> None:
    is_wide = not page.is_drawn or page.width >= _NARROW
    heads = ["tokens", *(("characters", "words") if is_wide else ()), *(("share",) if found else ())]
    page.line("".join(f"{head:>12}" for head in heads) + "  file")
    total = Counted(
        file="total",
        tokens=sum(one.tokens for one in counted),
        characters=sum(one.characters for one in counted),
        words=sum(one.words for one in counted),
        exact=all(one.exact for one in counted if not one.error),
    )
    for one in (*counted, total):
        if one.error:
            page.line("".join(f"{'-':>12}" for _ in heads) + f"  {shown_name(one.file)}", "bad")
            continue
        cells = [f"{'' if one.exact else '~'}{one.tokens:,}"]
        cells += [f"{one.characters:,}", f"{one.words:,}"] if is_wide else []
        cells += [_percent(one.tokens, found)] if found else []
        page.line("".join(f"{cell:>12}" for cell in cells) + f"  {shown_name(one.file)}")
    page.line()
    of = "" if found is None else f"; share {_window_text(found)}"
    page.line(f"tokens: {_how(is_exact=total.exact, counter=counter, found=found)}{of}")


def _percent(tokens: int, found: LookupResult) -> str:
    share = 100 * tokens / found.context_window
    if 0 < share < 0.1:
        return "<0.1 %"
    return f"{share:.1f} %" if share < 10 else f"{share:,.0f} %"


COMMAND = Command(
    "count",
    Options,
    run,
    about=ABOUT,
    params=(
        Argument(
            "file",
            "texts or session files; without FILE, or with -, standard input",
            required=False,
            is_many=True,
            is_file=True,
        ),
        MODEL,
        BASE_URL,
        Flag("--plain", "count a session file as it is, with its JSON"),
    ),
    examples=(
        ("compactd count README.md --model gpt-5", "count exactly, with the model's tokenizer"),
        ("git diff | compactd count --model opus", "show how much of the window a diff needs"),
        ("compactd count docs/*.md", "count several files, with their sum"),
    ),
)
