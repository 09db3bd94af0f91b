"""`python twins NAME`: runs the real daemon with one fault."""

from __future__ import annotations

import os
import sys

import insides
import streams

TWINS = {
    "a call parted from its result": streams.PartsACall,
    "an orphan result": streams.LeavesAnOrphan,
    "the newest request reworded": streams.Rewords,
    "a count that ignores the system prompt": insides.forgets_the_system_prompt,
    "growth reported as success": streams.ReportsGrowth,
    "a second compaction without gain": streams.CompactsForNothing,
    "an event without its end": streams.ForgetsAnEnd,
    "an end without a start": streams.EndsWhatNeverBegan,
    "a seq gap": streams.SkipsANumber,
    "state that waits": streams.StateWaits,
    "an acknowledged message lost at SIGKILL": insides.acknowledges_too_early,
    "a torn record accepted": insides.takes_torn_records_in,
    "undo that loses later messages": insides.undoes_what_came_later,
    "search that forgets what was compacted": streams.ForgetsWhatWasCompacted,
    "a file both read and modified": streams.ListsAFileTwice,
    "a UTF-8 cut": streams.CutsACharacter,
    "a re-cased argument": streams.ChangesTheCase,
    "two answers to a request": streams.AnswersTwice,
    "none to a bad one": streams.AnswersNone,
    "a path made of an id": insides.makes_paths_of_ids,
    "a plan that is carried out": streams.PlansForReal,
    "another provider's shape taken": streams.TakesEveryShape,
    "a late report as the size": streams.CountsALateReport,
    "a lock for looking": streams.OpensToLook,
    "settings dropped for one bad value": streams.DropsAllOptions,
    "a reader that is told nothing": streams.TellsAReaderNothing,
    "a summary that is not shown": streams.ShowsNoSummary,
    "another strategy than asked for": streams.TakesAnotherStrategy,
    "an aborted turn without its end": streams.EndsNoAbortedTurn,
    "work for a client that is gone": streams.GoesOnAlone,
    "an unknown model without a warning": streams.WarnsOfNoModel,
    "a setting that stays": streams.UnsetsNothing,
    "an undo that cannot be forced": streams.ForcesNoUndo,
    "a pin that is not told": streams.TellsNoPin,
    "a prompt that cannot be dropped": streams.DropsNoPrompt,
    "an original that is cut": insides.cuts_originals,
    "an empty list refused": streams.RefusesAnEmptyList,
}

if __name__ == "__main__":
    made = TWINS[sys.argv[1]]
    code = made().run() if isinstance(made, type) else made()
    sys.stdout.flush()
    os._exit(code)
