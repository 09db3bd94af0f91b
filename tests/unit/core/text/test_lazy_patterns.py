"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages

import pytest

import compactd.core
import compactd.formats
from compactd.core.text.lazy_patterns import LazyPattern

WORDS = r"(?P<word>[a-z]+)"


def test_the_methods_do_what_those_of_a_compiled_pattern_do() -> None:
    text = "One two, Three"
    for method in ("search", "match", "fullmatch", "finditer"):
        # A new pattern each time, so that every method is once the first that is called.
        lazy, compiled = LazyPattern(WORDS, re.IGNORECASE), re.compile(WORDS, re.IGNORECASE)
        for arguments in ((text,), (text, 3), (text, 4, 7)):
            ours, theirs = (getattr(one, method)(*arguments) for one in (lazy, compiled))
            assert repr(_spans(ours)) == repr(_spans(theirs))
    assert LazyPattern(WORDS).findall(text, 4) == ["two", "hree"]
    assert LazyPattern(WORDS).split(text, 1) == ["O", "ne", " two, Three"]
    assert LazyPattern(WORDS).sub(lambda found: found["word"].upper(), text, 1) == "ONE two, Three"


def _spans(found: object) -> object:
    return found.span() if isinstance(found, re.Match) else [one.span() for one in found or ()]  # type: ignore[attr-defined]


def test_a_pattern_is_compiled_at_its_first_use() -> None:
    lazy = LazyPattern("(")
    with pytest.raises(re.error):
        lazy.search("")


def test_after_the_first_use_the_compiled_pattern_is_called_directly() -> None:
    lazy = LazyPattern(WORDS)
    lazy.search("a")
    assert lazy.finditer == re.compile(WORDS).finditer


def test_every_pattern_of_the_engine_and_the_formats_can_be_compiled() -> None:
    for package in (compactd.core, compactd.formats):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)
    gc.unfreeze()  # a daemon that another test ran in this process has frozen what there was
    patterns = [one for one in gc.get_objects() if type(one) is LazyPattern and one.pattern != "("]
    assert len(patterns) > 300
    for pattern in patterns:
        assert pattern.search("") is None or pattern.search("") is not None


def test_to_import_the_engine_compiles_no_pattern_of_it() -> None:
    # In a process of its own: this one has used patterns.
    counts = """
import gc
import compactd.core.work.state, compactd.core.constraints.constraints, compactd.core.authors.authors
from compactd.core.text.lazy_patterns import LazyPattern
print(sum("search" in vars(one) for one in gc.get_objects() if type(one) is LazyPattern))
"""
    done = subprocess.run(
        [sys.executable, "-c", counts], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "0\n"
