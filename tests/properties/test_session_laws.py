"""The laws under every profile, after any steps in any order (docs/dev/behaviour.md, "Laws").

After each step: 1 in every format, 2, 4, 6, 7, 8 and 9; 3 where a provider rejects all it is sent; 5 where
the journal is cut off after any record. docs/laws.md says where else each law is kept.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from compactd.core.budget.profiles import PROFILES
from compactd.core.budget.usage_report import scale_of
from compactd.core.planning.request import CompactRequest
from compactd.protocol.messages import Image, Message, ToolCall, ToolResult, Usage
from compactd.protocol.settings import GivenSettings
from compactd.session import undo
from tests.properties.life import Life, newest_stays, numbers, opened, reopened, whole
from tests.properties.steps import act, lives, talk
from tests.support.examples import examples
from tests.support.pastes import LOG, PASTES
from tests.support.quiet_world import Quiet
from tests.support.rendered import says

# Not shrunk: a life is a dozen steps, and shrinking one would outlast the test's own limit.
LIVES = settings(
    max_examples=examples(24),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.reuse, Phase.generate),
)


@pytest.mark.parametrize("profile", PROFILES)
@given(steps=lives(), cut=st.integers(0, 200))
@LIVES
def test_under_every_profile_the_laws_hold_after_whatever_step(
    profile: str, steps: list[tuple[object, ...]], cut: int
) -> None:
    life = Life(opened(Quiet(), profile))

    for step in steps:
        act(life, step)
        life.laws_hold()

    upto = 1 + cut % len(life.session.entries)
    part = Life(reopened(life.session, upto))
    here = part.session.state.originals
    part.said = {entry: raw for entry, raw in life.said.items() if entry in here}
    assert list(part.said) == list(life.said)[: len(part.said)]
    part.laws_hold()
    newest_stays(part.session)


TARGETS = st.sampled_from((200, 600, 1_500, 4_000))
CONDENSING = st.one_of(
    st.tuples(st.just("paste"), PASTES),
    st.tuples(st.just("paste"), PASTES),
    st.tuples(st.just("target"), TARGETS),
    st.tuples(st.just("target"), TARGETS),
    st.tuples(st.just("answer"), st.integers(1, 900)),
    st.tuples(st.sampled_from(("undo", "redo", "prune", "keep")), st.none()),
    st.tuples(st.sampled_from(("branch", "redact", "pin")), st.integers(0, 40)),
)


@pytest.mark.parametrize("profile", PROFILES)
@given(steps=st.lists(CONDENSING, min_size=3, max_size=9))
@LIVES
def test_the_laws_hold_where_pasted_requests_are_condensed(
    profile: str, steps: list[tuple[str, object]]
) -> None:
    life = Life(opened(Quiet(), profile, GivenSettings(context_window=100_000)))
    life.append([says("user", f"Mend the loader.\n\n{LOG}\n\nNever touch cache.py."), says("assistant", LOG)])
    life.append([says("user", f"And this.\n\n{LOG}")])

    for step in (*steps, ("target", 600)):
        match step:
            case ("paste", str(text)):
                life.append([says("user", f"See this.\n\n{text}")])
            case ("target", int(tokens)):
                life.compact(CompactRequest(target_tokens=tokens))
            case ("answer", int(words)):
                life.append([says("assistant", "I see it. " * words)])
            case ("keep", _):
                life.compact(CompactRequest(keep_messages=2))
            case ("branch", int(at)):
                life.branch(at)
            case ("redact", int(at)):
                life.redact(at)
            case ("pin", int(at)):
                life.pin(at, True)
            case (how, _):
                life.change(how)
        life.laws_hold()


MODELS = ("anthropic/claude-sonnet-4-5", "openai/gpt-5", "m/m2")
CHANGES = st.one_of(
    st.tuples(st.just("configure"), st.sampled_from(("default", "default", "opal", "opencode"))),
    st.tuples(st.just("switch"), st.sampled_from(MODELS)),
    st.tuples(st.just("talk"), talk(2, 6), st.sampled_from((None, 0.9, 1.2, 1.6))),
    st.tuples(st.just("talk"), talk(2, 6), st.sampled_from((0.9, 1.2, 1.6))),
    st.tuples(st.just("talk"), st.just([]), st.sampled_from((1.0, 1.6))),
)


@given(changes=st.lists(CHANGES, min_size=8, max_size=20))
@settings(LIVES, max_examples=examples(40))
def test_sizes_after_reports_under_one_estimator_after_another_are_those_of_a_replay(
    changes: list[tuple[object, ...]],
) -> None:
    life = Life(opened(Quiet(), "default", GivenSettings(context_window=1_000_000)))

    for change in changes:
        match change:
            case ("configure", str(profile)):
                life.configure(GivenSettings(profile=profile))
            case ("switch", str(model)):
                life.switch(model)
            case ("talk", said, ratio):
                tokens = sum(life.session.count_message(message) for message in said)
                whole = 400 + int((ratio or 0) * (life.session.state.estimated_size + tokens))
                life.append(said, None if ratio is None else Usage(input_tokens=whole, output_tokens=30))
        assert numbers(reopened(life.session)) == numbers(life.session)


def test_a_report_behind_a_change_of_estimator_means_the_same_after_a_restart() -> None:
    life = Life(opened(Quiet(), "opal"))
    life.append([says("user", "go"), says("assistant", "ok"), says("user", "缓存在第二次加载后失效。" * 20)])
    life.configure(GivenSettings(profile="default"))
    life.append([says("user", "more")], Usage(input_tokens=500, output_tokens=10))
    life.append([says("assistant", "done"), says("user", "and?")], Usage(input_tokens=900, output_tokens=5))

    life.laws_hold()


@pytest.mark.parametrize("model", ["openai/gpt-5", "anthropic/claude-sonnet-4-5"])
@pytest.mark.parametrize("how", ["compact", "prune", "redact"])
def test_summaries_and_stubs_that_another_estimator_counted_count_the_same_after_a_restart(
    how: str, model: str
) -> None:
    life = Life(
        opened(Quiet(), "opal", GivenSettings(context_window=4_000, prune_protect=0, prune_minimum=0))
    )
    call = ToolCall(call_id="a", name="read", arguments=Raw(b'{"path":"a.py"}'))
    found = ToolResult(call_id="a", content="缓存在第二次加载后失效。" * 60)
    life.append([says("user", "Die Größe prüfen, 缓存"), Message(role="assistant", content=(call,))])
    life.append([Message(role="tool", content=(found,))])
    life.append([says(role, "weiter: größer? " * 40) for role in ("assistant", "user") * 3])
    if how == "compact":
        life.compact(CompactRequest(keep_messages=2), twice=False)
    else:
        life.change("prune")
    assert life.session.state.in_force.steps

    life.configure(GivenSettings(profile="default"))
    life.switch(model)
    if how == "redact":
        life.redact(2)

    whole(life.session)
    life.laws_hold()
    life.configure(GivenSettings(profile="opal"))
    whole(life.session)
    life.laws_hold()


def test_a_report_after_a_change_of_estimator_teaches_nothing_about_the_one_before() -> None:
    life = Life(opened(Quiet(), "default", GivenSettings(context_window=1_000_000)))
    life.switch("m/m2")
    session, size = life.session, 5_000
    for _ in range(4):
        life.append([says("user", "缓存在第二次加载后失效。" * 60)])
        size += round(1.2 * session.state.items[-1].tokens)
        life.append([says("assistant", "done")], Usage(input_tokens=size, output_tokens=1))
    learned = scale_of(session.state, session.counter)
    assert learned.hidden > 0
    life.configure(GivenSettings(profile="opal"))
    undo.branch(session, "e2")

    life.append([], Usage(input_tokens=1, output_tokens=1), session.state.epoch)

    life.configure(GivenSettings(profile="default"))
    assert scale_of(session.state, session.counter) == learned
    again = reopened(session)
    assert scale_of(again.state, again.counter) == learned


def test_what_was_no_request_is_none_once_it_is_redacted() -> None:
    life = Life(opened(Quiet(), "klaude"))
    picture = Message(role="user", content=(Image(media_type="image/png", data="QUJD"),))
    life.append([says("user", "do it"), says("assistant", "so " * 400), picture, says("user", " ")])
    life.append([says("assistant", "more " * 400), says("assistant", "done")])
    done = life.compact(CompactRequest(keep_messages=1))
    assert done is not None
    assert done.compacted

    life.redact(2)
    life.redact(2)

    life.laws_hold()
