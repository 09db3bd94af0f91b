"""Settings of the interpreter."""

from __future__ import annotations

import gc

import pytest

from compactd._runtime.interpreter import paused_gc


def test_no_garbage_is_collected_in_the_block_and_again_after_it() -> None:
    with paused_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_is_collected_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="wrong"), paused_gc():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    with paused_gc():
        with paused_gc():
            pass
        assert not gc.isenabled()
