"""Hypothesis strategies for conversations of every kind and for clients' steps in every order."""

from __future__ import annotations

import json
from itertools import count

from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from compactd.agent.recovery import FailedRequest
from compactd.core.budget.profiles import PROFILES
from compactd.core.planning.request import CompactRequest
from compactd.protocol.messages import (
    Block,
    Image,
    Message,
    Meta,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from compactd.protocol.settings import GivenSettings
from tests.properties.life import Life
from tests.support.conversations import MODELS, conversations, tools

WORDS = "so we went on and looked at it once more until all was well "
SCRIPTS = (
    "",
    "größer als 12 KB: ‘quoted’ ",
    "缓存在第二次加载后失效。",
    "кэш устарел ",
    "🧵👩‍🔧 e\u0301 \u202e",
    "\u0000\ufeff",
)
"""Texts that a count in code points, bytes or UTF-16 units gets wrong in different ways."""
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SIZES = st.sampled_from((0, 20, 80, 300, 900, 2_500))
HUGE_CHARS = 30_000
FILES = ("a.py", "src/b.py", "docs/größe.md", "c.py", "tests/d.py")
KINDS = "UUUAATCCCCCCBYPSEHIO"
"""User, answer, thinking answer, calls, bash, synthetic, pinned, system, empty, huge, image, orphan."""


@st.composite
def talk(draw: st.DrawFn, least: int = 1, most: int = 7) -> list[Message]:
    """A piece of a conversation: parallel, open and orphan calls, pictures, everything that agents send."""
    numbers = count(draw(st.integers(0, 10**6)))
    made: list[Message] = []
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=least, max_size=most)):
        made += _piece(draw, kind, next(numbers))
    return made


def _piece(draw: st.DrawFn, kind: str, number: int) -> list[Message]:
    text = _text(draw(st.sampled_from(SCRIPTS)), draw(SIZES), number)
    match kind:
        case "U":
            return [_says("user", Text(text=f"request {number}: never touch c.py. {text}"))]
        case "A":
            return [_says("assistant", Text(text=f"answer {number} {text}"))]
        case "T":
            thought = Thinking(text=f"hm {text}", signature="c2ln")
            return [_says("assistant", thought, Text(text=f"so {number}"))]
        case "C":
            return _batch(draw, number, text)
        case "B":
            shell = Text(text=f"$ make {number}\n{text}")
            return [Message(role="user", content=(shell,), meta=Meta(kind="bash_execution"))]
        case "Y":
            return [Message(role="user", content=(Text(text=f"go on {text}"),), meta=Meta(synthetic=True))]
        case "P":
            return [Message(role="user", content=(Text(text=f"keep {number}"),), meta=Meta(pinned=True))]
        case "S":
            return [_says("system", Text(text=f"note {number} {text}"))]
        case "E":
            return [_says(draw(st.sampled_from(("user", "assistant", "system"))), Text(text=" "))]
        case "H":
            return [_says("user", Text(text=_text("", HUGE_CHARS, number)))]
        case "I":
            picture = Image(media_type="image/png", data=PNG)
            return [_says("user", Text(text=f"see {number}"), picture)]
        case _:
            return [_says("tool", ToolResult(call_id=f"nobody{number}", content=text))]


def _batch(draw: st.DrawFn, number: int, text: str) -> list[Message]:
    """Calls at once; some of their results are missing, in another order, failed, huge or pictures."""
    calls = [
        ToolCall(call_id=f"t{number}.{at}", name=name, arguments=Raw(json.dumps(arguments).encode()))
        for at, (name, arguments) in enumerate(draw(st.lists(CALLS, min_size=1, max_size=3)))
    ]
    said = [Text(text=f"look {number}")] if draw(st.booleans()) else []
    answered = draw(st.permutations(calls))[: len(calls) - draw(st.sampled_from((0, 0, 0, 0, 1)))]
    results = []
    for call in answered:
        content: str | tuple[Block, ...] = f"{call.call_id}: {text}"
        if draw(st.integers(0, 7)) == 0:
            content = (Text(text=f"seen {text}"), Image(media_type="image/png", data=PNG))
        is_error = draw(st.integers(0, 4)) == 0
        results.append(ToolResult(call_id=call.call_id, content=content, is_error=is_error))
    asked = _says("assistant", *said, *calls)
    if draw(st.integers(0, 5)) == 0:
        return [asked, _says("user", *results)] if results else [asked]
    return [asked, *(_says("tool", result) for result in results)]


CALLS = st.one_of(
    st.tuples(st.just("read"), st.sampled_from(FILES).map(lambda path: {"path": path})),
    st.tuples(
        st.just("edit"), st.sampled_from(FILES).map(lambda path: {"file_path": path, "old": "a", "new": "b"})
    ),
    st.tuples(
        st.just("write"), st.sampled_from(FILES).map(lambda path: {"path": path, "content": "x = 1\n"})
    ),
    st.tuples(st.just("run"), st.just({"command": "make test"})),
    st.tuples(st.just("skill"), st.just({})),
)


def _says(role: Role, *blocks: Block) -> Message:
    return Message(role=role, content=blocks)


def _text(script: str, chars: int, number: int) -> str:
    whole = f"{script}{number} {WORDS}"
    return (whole * (chars // len(whole) + 1))[:chars]


MESSAGES = st.one_of(
    talk(),
    talk(),
    talk(),
    # Ids of the client would name other messages from one step to the next.
    conversations(max_size=5).map(lambda said: [replace(message, id=None) for message in said]),
)

TOKENS = st.sampled_from((0, 1, 300, 2_000, 3_900, 4_100, 50_000, 10**9))
REPORTS = st.none() | st.builds(
    Usage,
    input_tokens=TOKENS,
    output_tokens=TOKENS,
    cache_read_tokens=TOKENS,
    context_window=st.sampled_from((None, None, 8_000)),
)

BUDGETS = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"target_tokens": st.sampled_from((60, 200, 600, 1_500, 4_000, 50_000))}),
    st.fixed_dictionaries({"keep_recent": st.sampled_from((1, 50, 300, 2_000, 10_000))}),
    st.fixed_dictionaries({"keep_messages": st.sampled_from((1, 2, 5, 9))}),
)


@st.composite
def budgets(draw: st.DrawFn) -> CompactRequest:
    """Compactions of every kind that asks no model."""
    return CompactRequest(
        trigger=draw(st.sampled_from(("manual", "manual", "threshold", "overflow"))),
        strategy=draw(st.sampled_from((None, None, "extract", "truncate"))),
        force=draw(st.booleans()),
        **draw(BUDGETS),
    )


REJECTED = st.sampled_from(
    (
        FailedRequest(status=400, text="prompt is too long: 5012 tokens > 4000 maximum"),
        FailedRequest(status=400, text="prompt is too long: 2001 tokens > 1000 maximum"),
        FailedRequest(status=400, code="context_length_exceeded", text="too long"),
        FailedRequest(status=413, text=""),
        FailedRequest(status=429, text="slow down"),
    )
)

GIVEN = st.builds(
    GivenSettings,
    profile=st.sampled_from((None, None, *PROFILES)),
    context_window=st.sampled_from((None, 600, 1_500, 4_000, 20_000, 200_000)),
    prune=st.sampled_from((None, True, False)),
    prune_protect=st.sampled_from((None, 0, 200)),
    prune_minimum=st.sampled_from((None, 0, 50)),
    summary_tokens=st.sampled_from((None, None, 64, 300)),
    enabled=st.sampled_from((None, None, None, False)),
    auto_continue=st.sampled_from((None, True)),
)

AT = st.integers(0, 60)

NO_FILES = ((), ())
FILES_TOLD = st.sampled_from((NO_FILES, (("told.py",), ("made.py", "a.py"))))

APPEND = st.tuples(st.just("append"), MESSAGES, st.none(), AT, st.just(NO_FILES))
COMPACT = st.tuples(st.just("compact"), budgets())
OTHERS = st.one_of(
    st.tuples(st.sampled_from(("append", "end")), MESSAGES, REPORTS, AT, FILES_TOLD),
    st.tuples(st.sampled_from(("undo", "undo", "redo", "prune", "begin", "begin"))),
    st.tuples(st.sampled_from(("undo", "redo", "prune", "begin"))),
    st.tuples(st.just("branch"), AT),
    st.tuples(st.just("pin"), AT, st.booleans()),
    st.tuples(st.just("redact"), AT),
    st.tuples(
        st.just("configure"), GIVEN, st.sampled_from((None, "be brief", WORDS * 20)), st.none() | tools()
    ),
    st.tuples(
        st.just("switch"),
        st.sampled_from([model for model in MODELS if model is not None and "gpt" not in model]),
    ),
    st.tuples(st.just("rejected"), REJECTED),
)
STEPS = st.one_of(APPEND, COMPACT, OTHERS, OTHERS)
"""One step each: its name, and what it is made of."""

FIRST = st.tuples(st.just("append"), talk(6, 16), st.none(), AT, st.just(NO_FILES))
"""Enough that there is something to compact."""


@st.composite
def lives(draw: st.DrawFn) -> list[tuple[object, ...]]:
    """A conversation, and what is done to it."""
    return [draw(FIRST), *draw(st.lists(STEPS, min_size=4, max_size=12))]


def act(life: Life, step: tuple[object, ...]) -> None:
    """Does one of `STEPS`."""
    match step:
        case (("append" | "end") as how, messages, report, epoch, files):
            now = life.session.state.epoch
            life.append(messages, report, 1 + epoch % now, files=files, ends_turn=how == "end")
        case ("compact", CompactRequest() as request):
            life.compact(request)
        case (("undo" | "redo" | "prune") as how,):
            life.change(how)
        case ("begin",):
            life.begin()
        case ("branch", int(at)):
            life.branch(at)
        case ("pin", int(at), bool(is_on)):
            life.pin(at, is_on)
        case ("redact", int(at)):
            life.redact(at)
        case ("configure", GivenSettings() as given, system, offered):
            life.configure(given, system, offered)
        case ("switch", str(model)):
            life.switch(model)
        case ("rejected", FailedRequest() as failed):
            life.rejected(failed)
        case _:
            raise AssertionError(step)
