"""Facts cached between plans change no plan: law 8 (docs/dev/behaviour.md, "Laws"), after any steps."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from msgspec.structs import replace

from compactd.compaction.driver import inputs_of
from compactd.core.planning.plan import NotCompacted, Plan, plan
from compactd.core.planning.request import CompactRequest
from compactd.protocol.errors import CannotFit
from compactd.session.session import Session
from tests.properties.life import Life, opened
from tests.properties.steps import act, lives
from tests.support.cut_laws import outline_of
from tests.support.examples import examples
from tests.support.quiet_world import Quiet

# Not shrunk: a life is a dozen steps, and shrinking one would outlast the test's own limit.
LIVES = settings(
    max_examples=examples(10),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    phases=(Phase.reuse, Phase.generate),
)

REQUESTS = (
    CompactRequest(keep_recent=300),
    CompactRequest(keep_messages=4, force=True, trigger="threshold"),
    CompactRequest(target_tokens=900, strategy="extract"),
    CompactRequest(trigger="overflow"),
)


def planned(session: Session, request: CompactRequest, *, from_scratch: bool) -> Plan | NotCompacted | str:
    inputs = inputs_of(session, request)
    scratch = replace(inputs, known=None, limits=None)
    try:
        made = plan(scratch if from_scratch else inputs)
    except CannotFit as error:
        return f"{error} {error.data}"
    return replace(made, inputs=scratch) if isinstance(made, Plan) else made


@pytest.mark.parametrize("profile", ["default", "go-agent"])
@given(steps=lives())
@LIVES
def test_a_plan_is_the_same_with_what_was_kept_and_from_scratch(
    profile: str, steps: list[tuple[object, ...]]
) -> None:
    life = Life(opened(Quiet(), profile))

    for step in steps:
        act(life, step)
        for request in REQUESTS:
            kept = planned(life.session, request, from_scratch=False)
            assert kept == planned(life.session, request, from_scratch=True)
        known = inputs_of(life.session, REQUESTS[0]).known
        assert known is not None
        assert known.outline == outline_of(life.session.state.items)
        assert known.fresh == ()
