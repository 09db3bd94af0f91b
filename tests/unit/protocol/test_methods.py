"""The table of methods is complete: each row has one function that carries it out, and fits its params."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections import Counter

import pytest

from compactd.daemon.handlers import AREAS
from compactd.protocol.methods import METHODS, Method

ROWS = pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)


def functions() -> Counter[str]:
    return Counter(
        name for area in AREAS for name, _ in inspect.getmembers(area, inspect.isfunction) if name[0] != "_"
    )


def test_each_method_has_one_function_and_each_function_a_method() -> None:
    assert functions() == {one.handler: 1 for one in METHODS.values() if one.name != "daemon/ping"}


@ROWS
def test_a_method_of_a_session_takes_its_id(method: Method) -> None:
    assert method.scope == "none" or "session_id" in method.params.__struct_encode_fields__


@ROWS
def test_what_only_reads_changes_nothing_and_may_be_repeated(method: Method) -> None:
    changes = method.opens or method.ends or method.grows or method.long_running
    assert not (method.read_only and (changes or method.repeat != "yes"))


@ROWS
def test_what_is_repeated_with_ids_takes_ids(method: Method) -> None:
    fields = method.params.__struct_encode_fields__
    assert method.repeat != "with_ids" or method.opens or not {"messages", "call_id"}.isdisjoint(fields)


def test_the_table_is_read_without_the_engine() -> None:
    """The client reads the table: it may load nothing but the protocol."""
    code = "import sys, compactd.protocol.methods; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = {name for name in done.stdout.split() if name.startswith("compactd.")}
    assert all(name.startswith("compactd.protocol") for name in loaded)
