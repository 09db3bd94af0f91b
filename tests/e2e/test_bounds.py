"""The bounds in the schema are the daemon's: it accepts the edge and refuses the value beyond."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from tests.support.client import Daemon
from tools.codegen.json_schema import json_schema

SCHEMA: dict[str, Any] = json.loads(json_schema())["$defs"]
ALIASES = {"auto": "enabled", "preserve_count": "keep_messages"}
BUDGETS = ("keep_recent", "keep_messages", "preserve_count", "target_tokens")


def shape(kind: str, name: str) -> dict[str, Any]:
    """The schema of a field, without null."""
    field = SCHEMA[kind]["properties"][name]
    return next(one for one in field.get("anyOf", [field]) if one.get("type") != "null")


def bounded(kind: str) -> list[str]:
    """The fields that have bounds or a list of values."""
    limits = {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "enum"}
    return [name for name in SCHEMA[kind]["properties"] if limits & set(shape(kind, name))]


def edges(one: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """(values just inside, values just outside)."""
    if "enum" in one:
        return list(one["enum"]), ["none of these"]
    step = 1 if one["type"] == "integer" else 1e-6
    inside, outside = [], []
    if "minimum" in one:
        inside.append(one["minimum"])
        outside.append(one["minimum"] - step)
    if "exclusiveMinimum" in one:
        inside.append(one["exclusiveMinimum"] + step)
        outside.append(one["exclusiveMinimum"])
    if "maximum" in one:
        inside.append(one["maximum"])
        outside.append(one["maximum"] + step)
    return inside, outside


def is_accepted(daemon: Daemon, method: str, path: str, **params: Any) -> bool:
    """Return whether the daemon accepts these params. A refusal must name the field."""
    answered = daemon.answer(daemon.ask(method, **params)).value
    if "result" in answered:
        return True
    error = answered["error"]
    assert (error["code"], error["data"]["path"]) == (-32602, path), error
    return False


def test_the_schema_states_bounds_for_all_that_is_checked() -> None:
    assert len(bounded("GivenSettings")) == 24
    assert bounded("CompactParams") == [*BUDGETS, "strategy"]
    assert bounded("HistoryParams") == ["limit"]
    assert bounded("ContextParams") == ["format"]


@pytest.mark.parametrize("name", bounded("GivenSettings"))
def test_a_setting_is_taken_up_to_its_bounds(daemon: Daemon, session: str, name: str) -> None:
    inside, outside = edges(shape("GivenSettings", name))

    for value in inside:
        done = daemon.call("session/configure", session_id=session, compaction={name: value})
        assert done["settings"][ALIASES.get(name, name)]["value"] == value
    for value in outside:
        given = {"session_id": session, "compaction": {name: value}}
        assert not is_accepted(daemon, "session/configure", f"$.compaction.{name}", **given), value


@pytest.mark.parametrize("name", bounded("CompactParams"))
def test_a_compaction_is_asked_for_within_the_bounds(daemon: Daemon, session: str, name: str) -> None:
    inside, outside = edges(shape("CompactParams", name))
    if name == "target_tokens":
        inside.remove(1)  # cannot fit, which is another answer
    if name == "strategy":
        inside.remove("summarize")  # wants a model

    for value in inside:
        assert is_accepted(
            daemon, "session/compact", f"$.{name}", session_id=session, dry_run=True, **{name: value}
        )
    for value in outside:
        assert not is_accepted(
            daemon, "session/compact", f"$.{name}", session_id=session, dry_run=True, **{name: value}
        )


@pytest.mark.parametrize(
    ("method", "kind", "name", "more"),
    [
        ("session/history", "HistoryParams", "limit", {}),
        ("session/search", "SearchParams", "limit", {"query": "x"}),
        ("session/start", "StartParams", "context_window", {}),
        ("session/start", "StartParams", "durability", {}),
        ("overflow/classify", "ClassifyParams", "window", {"message": "x"}),
    ],
)
def test_other_params_are_taken_up_to_their_bounds(
    daemon: Daemon, session: str, method: str, kind: str, name: str, more: dict[str, Any]
) -> None:
    inside, outside = edges(shape(kind, name))

    for value in inside:
        assert is_accepted(daemon, method, f"$.{name}", session_id=session, **more, **{name: value})
    for value in outside:
        assert not is_accepted(daemon, method, f"$.{name}", session_id=session, **more, **{name: value})


def test_a_format_is_one_of_those_listed(daemon: Daemon, session: str) -> None:
    inside, outside = edges(shape("ContextParams", "format"))

    for value in inside:
        assert daemon.call("session/context", session_id=session, format=value)["messages"]
    for value in outside:
        error = daemon.refusal("session/context", session_id=session, format=value)
        assert (error.code, error.data["supported"]) == (1010, inside)


def test_two_budgets_exclude_each_other_as_the_schema_says(daemon: Daemon, session: str) -> None:
    stated = {tuple(one["required"]) for one in SCHEMA["CompactParams"]["not"]["anyOf"]}

    for pair in combinations(BUDGETS, 2):
        given = dict.fromkeys(pair, 1000)
        place = "$.keep_messages" if pair[1] == "preserve_count" else f"$.{pair[1]}"
        accepted = is_accepted(daemon, "session/compact", place, session_id=session, dry_run=True, **given)
        assert accepted is (pair not in stated), pair
