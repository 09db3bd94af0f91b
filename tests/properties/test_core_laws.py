"""Laws of the engine that hold for any conversation (docs/dev/behaviour.md, "Laws")."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from compactd.core.budget.settings import PROFILES
from compactd.core.history.entries import Item, View, with_stub
from compactd.core.history.message_kinds import kind_of, newest_request
from compactd.core.history.projection import project
from compactd.core.planning.clip import MIN_CLIP
from compactd.core.planning.plan import CompactRequest, Fixed, Inputs, NotCompacted, plan
from compactd.core.planning.prune import prune
from compactd.core.summary.compaction import CompactionOutcome, Draft, PruneOnly, SummaryInput, compact
from compactd.protocol.errors import CannotFit
from tests.support.cut_laws import open_calls, pairs, safe_cuts
from tests.support.dialogue import (
    CHARS4,
    after,
    dialogue,
    drive,
    ids,
    inputs_of,
    resolved,
    standing_of,
    view_of,
)
from tests.support.examples import examples

QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""No clock decides whether a law holds."""

RUNS = settings(QUICK, max_examples=examples(60))
"""Settings for laws that carry a compaction out."""

SIZES = st.sampled_from([4, 12, 30, 60, 200, 900])
WINDOWS = st.sampled_from([200, 500, 1_000, 4_000, 20_000])


@st.composite
def conversations(draw: st.DrawFn, first: int = 1) -> tuple[Item, ...]:
    """Messages of every role, batches of calls, open ones among them."""
    words: list[str] = []
    for kind in draw(st.lists(st.sampled_from("UUBYPSAACCCC"), min_size=1, max_size=12)):
        size = draw(SIZES)
        if kind == "C":
            is_open = "?" if draw(st.integers(0, 11)) == 0 else ""
            words.append(f"A{max(12, size)}{is_open}")
            words += [f"T{tokens}" for tokens in draw(st.lists(SIZES, min_size=1, max_size=3))]
        else:
            words.append(f"{kind}{size}")
    return dialogue(" ".join(words), first)


@st.composite
def requests(draw: st.DrawFn) -> CompactRequest:
    """Requests of every kind that ask no model."""
    budget: dict[str, int] = draw(
        st.one_of(
            st.just({}),
            st.fixed_dictionaries({"target_tokens": st.sampled_from([100, 200, 400, 1_000, 3_000])}),
            st.fixed_dictionaries({"keep_recent": st.sampled_from([5, 50, 300, 2_000])}),
            st.fixed_dictionaries({"keep_messages": st.sampled_from([1, 2, 5, 9])}),
        )
    )
    return CompactRequest(
        trigger=draw(st.sampled_from(["manual", "threshold", "overflow"])),
        strategy=draw(st.sampled_from([None, "extract", "truncate"])),
        force=draw(st.booleans()),
        **budget,
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[Inputs, tuple[Item, ...]]:
    """Draw the inputs of a plan, and the original messages; sometimes after an earlier compaction."""
    items = originals = draw(conversations())
    tail_from = 0
    window, profile = draw(WINDOWS), draw(st.sampled_from(sorted(PROFILES)))
    fixed = Fixed(draw(st.sampled_from([0, 20, 100])), 10)
    if draw(st.booleans()):
        first = inputs_of(view_of(items), request=CompactRequest(keep_messages=2, force=True))
        end = run(first, originals)
        if isinstance(end, Draft):
            view = after(items, end)
            more = draw(conversations(first=500))
            items, tail_from, originals = (*view.items, *more), view.tail_from, (*originals, *more)
    view = replace(view_of(items), tail_from=tail_from)
    given = {"context_window": window, "profile": profile}
    inputs = inputs_of(view, fixed=fixed, request=draw(requests()), **given)
    return inputs, originals


def run(inputs: Inputs, originals: tuple[Item, ...]) -> CompactionOutcome | CannotFit:
    """Plans and carries out."""
    try:
        made = plan(inputs)
    except CannotFit as error:
        return error
    if isinstance(made, NotCompacted):
        return made
    return drive(compact(SummaryInput(plan=made)))[1]


def view_after(inputs: Inputs, end: Draft | PruneOnly) -> View:
    """The view that comes of it."""
    items = inputs.view.items
    if isinstance(end, Draft):
        return after(items, end)
    stubs = {stub.entry_id: stub for stub in end.stubs}
    shown = (with_stub(item, stubs[item.entry_id]) if item.entry_id in stubs else item for item in items)
    return replace(view_of(tuple(shown)), tail_from=inputs.view.tail_from)


def whole(inputs: Inputs, view: View) -> int:
    """Return the tokens of the whole request."""
    return inputs.fixed.system + inputs.fixed.tools + project(view.items, CHARS4).tokens


@given(conversations())
@QUICK
def test_no_safe_cut_parts_a_call_from_its_answer(items: tuple[Item, ...]) -> None:
    waiting = open_calls(items)

    for cut in safe_cuts(items):
        assert all((call < cut) == (result < cut) for call, result in pairs(items))
        assert all(cut <= call for call in waiting)
        assert cut == len(items) or kind_of(items[cut].message) != "result"


@given(cases())
@RUNS
def test_a_compaction_is_smaller_and_within_its_limit_measured_on_the_whole_request(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    end = run(inputs, originals)
    if not isinstance(end, Draft | PruneOnly):
        return

    view, result = view_after(inputs, end), end.result

    assert result.compacted
    assert result.tokens_before == whole(inputs, inputs.view)
    assert result.tokens_after == whole(inputs, view) < result.tokens_before
    assert result.tokens_after <= (inputs.request.target_tokens or result.tokens_after)
    assert result.messages_after == len(view.items)
    replaced = isinstance(end, Draft)
    assert result.messages_after == result.messages_before - result.messages_removed + replaced


@given(cases())
@RUNS
def test_the_newest_request_is_in_the_new_view_word_for_word_or_condensed_for_a_chosen_target(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    newest = newest_request(inputs.view.items)
    end = run(inputs, originals)
    if newest is None or not isinstance(end, Draft | PruneOnly):
        return
    asked, request = inputs.view.items[newest], inputs.request
    third = request.target_tokens // 3 if request.target_tokens and request.trigger == "manual" else None

    view = view_after(inputs, end)

    if third is None or asked.tokens <= max(third, MIN_CLIP):
        assert asked in view.items
        assert end.result.condensed_request is UNSET
    else:
        (shown,) = [item for item in view.items if item.entry_id == asked.entry_id]
        assert end.result.condensed_request == asked.entry_id
        assert (shown.message.role, shown.kind) == ("user", "stub")
        assert shown.tokens <= max(third, MIN_CLIP)
        assert newest_request(view.items) == view.items.index(shown)


@given(cases())
@RUNS
def test_a_compaction_breaks_no_pair_and_leaves_out_no_open_call(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    end = run(inputs, originals)
    if not isinstance(end, Draft | PruneOnly):
        return

    view = view_after(inputs, end)
    items = inputs.view.items

    assert len(project(view.items, CHARS4).repairs) <= len(project(items, CHARS4).repairs)
    assert {items[i].entry_id for i in open_calls(items)} <= set(ids(view.items))


@given(cases())
@RUNS
def test_a_second_compaction_with_the_same_budget_is_nothing_to_compact(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    # Forced or reduced to fit, only the session knows that nothing was added: `is_repeated`.
    inputs = replace(inputs, request=replace(inputs.request, force=False, trigger="manual"))
    end = run(inputs, originals)
    if not isinstance(end, Draft) or end.result.reason or end.stubs:
        return

    again = plan(replace(inputs, view=after(inputs.view.items, end)))

    assert isinstance(again, NotCompacted)
    repeated = replace(inputs.request, force=True, is_repeated=True)
    assert isinstance(plan(replace(inputs, request=repeated)), NotCompacted)


@given(cases())
@RUNS
def test_the_same_view_settings_and_request_give_the_same_plan_and_the_same_summary(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    one, two = run(inputs, originals), run(inputs, originals)

    if isinstance(one, CannotFit):
        assert isinstance(two, CannotFit)
        assert one.data == two.data
    else:
        assert one == two


@given(cases())
@RUNS
def test_only_a_floor_above_the_limit_cannot_fit(case: tuple[Inputs, tuple[Item, ...]]) -> None:
    inputs, originals = case
    end = run(inputs, originals)
    if not isinstance(end, CannotFit):
        return

    floor, limit = end.data["floor"], end.data["limit"]

    assert isinstance(floor, dict)
    assert isinstance(limit, int)
    assert sum(tokens for tokens in floor.values() if isinstance(tokens, int)) > limit


@given(cases())
@RUNS
def test_what_does_nothing_says_why_and_leaves_the_tokens_as_they_are(
    case: tuple[Inputs, tuple[Item, ...]],
) -> None:
    inputs, originals = case
    end = run(inputs, originals)
    if not isinstance(end, NotCompacted):
        return

    assert end.reason
    assert (end.tokens, end.messages) == (whole(inputs, inputs.view), len(inputs.view.items))


@given(cases())
@RUNS
def test_a_plan_accounts_for_every_message_once(case: tuple[Inputs, tuple[Item, ...]]) -> None:
    inputs, _ = case
    try:
        made = plan(inputs)
    except CannotFit:
        return
    if isinstance(made, NotCompacted) or not made.summary_budget:
        return

    merged = () if made.merged is None else (made.merged,)
    assert made.tokens_expected < made.tokens_before

    assert sorted((*merged, *made.removed, *made.pinned, *made.kept)) == sorted(ids(inputs.view.items))
    assert list(made.kept) == ids(inputs.view.items)[len(inputs.view.items) - len(made.kept) :]


@given(conversations(), st.integers(0, 300), st.integers(0, 100))
@QUICK
def test_a_prune_shortens_and_a_second_one_finds_nothing(
    items: tuple[Item, ...], protect: int, minimum: int
) -> None:
    given = resolved(prune_protect=protect, prune_minimum=minimum).settings
    found = prune(items, given, CHARS4)
    stubs = {stub.entry_id: stub for stub in found.stubs}

    shown = tuple(with_stub(item, stubs[item.entry_id]) if item.entry_id in stubs else item for item in items)

    before, then = project(items, CHARS4), project(shown, CHARS4)
    assert before.tokens - then.tokens == found.tokens_saved
    assert (found.tokens_saved > 0) == bool(stubs)
    assert before.repairs == then.repairs
    assert prune(shown, given, CHARS4).entry_ids == ()


@given(st.integers(0, 400_000), st.integers(1, 400_000), st.sampled_from(sorted(PROFILES)))
@QUICK
def test_a_larger_request_is_never_less_due(used: int, window: int, profile: str) -> None:
    order = {"fits": 0, "due": 1, "over": 2}
    given = resolved(profile=profile, context_window=window)

    one, two = standing_of(given, used).decision, standing_of(given, used + 1).decision

    assert order[one.kind] <= order[two.kind]
    assert one.threshold is not None
    assert 0 < one.threshold <= window
