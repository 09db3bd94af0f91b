"""Gemini CLI 0.61.0 with `compactd hook gemini-cli`: the next request contains what its compression lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.gemini.driven import SUMMARY, Gemini, Model, said
from tests.support.loopback import Answer

pytestmark = [pytest.mark.editor, pytest.mark.agent]

OURS = "Facts of this session"
FOUND = "The failing test is tests/ledger/test_rounding.py: ERR_HALF_EVEN in src/ledger/money.py, line 212."
AGAIN = "ERR_HALF_EVEN of tests/ledger/test_rounding.py is gone: src/ledger/money.py rounds half to even."


def test_what_the_compression_lost_comes_with_the_next_prompt_once(tmp_path: Path) -> None:
    model = Model()
    model.answers = [Answer(text=FOUND, count_input=True), Answer(text=AGAIN, count_input=True)]
    with model.server:
        gemini = Gemini(tmp_path, model)
        gemini.install()
        gemini.ask("Why does the build fail? Never touch src/api.py.")
        assert model.compressions == 0
        gemini.ask(f"Mend it. {'alpha ' * 300}")
        assert model.compressions > 0
        gemini.compress_no_more()
        asked = model.compressions

        gemini.ask("Go on.")
        gemini.ask("And then?")

        first, second, third, fourth = map(said, model.turns)
        assert model.compressions == asked
        assert [OURS in request for request in (first, second)] == [False, False]
        assert SUMMARY in third
        given = third.partition(OURS)[2]
        for fact in ("Never touch src/api.py.", "ERR_HALF_EVEN", "tests/ledger/test_rounding.py"):
            assert fact in given
        # A session that is resumed holds nothing of what hooks said: Gemini CLI does not write it down.
        assert [request.count(OURS) for request in (third, fourth)] == [1, 0]
