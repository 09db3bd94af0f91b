"""The mutants are valid Python, a sample can be drawn again, and what is explained is still there."""

from __future__ import annotations

import ast
import json

from tests.faults.mutants.__main__ import EXPLAINED
from tests.faults.mutants.places import SOURCE, all_mutants, sample


def test_each_mutant_is_valid_and_another_program() -> None:
    for mutant in sample(200, 7):
        right = (SOURCE / mutant.file).read_bytes()
        edited = ast.dump(ast.parse(mutant.apply(right)))
        assert edited != ast.dump(ast.parse(right)), mutant.name


def test_a_sample_is_that_of_its_seed() -> None:
    names = [mutant.name for mutant in sample(300, 1)]
    assert len(set(names)) == 300
    assert names == [mutant.name for mutant in sample(300, 1)]
    assert names[:20] == [mutant.name for mutant in sample(20, 1)]
    assert len(set(names) & {mutant.name for mutant in sample(300, 2)}) < 100


def test_what_is_explained_is_a_mutant() -> None:
    explained = json.loads(EXPLAINED.read_text("utf-8"))
    assert set(explained) <= {mutant.name for mutant in all_mutants()}
