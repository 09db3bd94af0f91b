"""A long conversation of the daemon's own agent loop with a model whose window overflows repeatedly."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tests.properties.loop_requests import is_summary
from tests.support.loopback import Answer, Call, ErrorEvent, Fail, Seen, Step
from tests.support.talk import text

WINDOW = 4_000
"""The model's window, as the server counts tokens."""

SUMMARY = """## Goal
- Go through the list.
## Constraints & Preferences
(none)
## Progress
### Done
- [x] The first items.
### In Progress
- [ ] The next item.
### Blocked
(none)
## Key Decisions
- **Order**: as they come.
## Next Steps
1. The next item.
## Critical Context
(none)
"""

BY_TEXT, BY_CODE, SILENT, IN_STREAM = "text", "code", "silent", "stream"

Place = tuple[int, int]
"""(the prompt, the step of its answer: 0 is the tool call)."""

TROUBLE: dict[Place, str] = {(13, 0): BY_TEXT, (27, 1): BY_CODE, (38, 1): SILENT, (50, 1): IN_STREAM}


def said(prompt: int) -> str:
    """A prompt's words; its number tells it from every other."""
    return f"Prompt {prompt:04}: {text(40, prompt)}"


def answered(place: Place) -> str:
    """Return the model's answer at `place`."""
    return f"Answer {place[0]:04}.{place[1]}: {text(30, place[0])}"


def result(prompt: int) -> str:
    """Return the result of the tool."""
    return f"Result {prompt:04}: {text(120, prompt + 3)}"


@dataclass
class Play:
    """The model: a call, then an answer, for each prompt. At some places it says that there is no room."""

    window: int = WINDOW
    trouble: dict[Place, str] = field(default_factory=dict)
    prompt: int = 0
    """The one that is being answered; the test sets it."""
    step: int = 0
    answers: list[Place] = field(default_factory=list)
    """Every whole answer, as it was given."""
    rejected: list[Seen] = field(default_factory=list)
    """Requests that were refused although the server could have taken them."""

    def begin(self, prompt: int) -> str:
        """The words of the next prompt."""
        self.prompt, self.step = prompt, 0
        return said(prompt)

    def reply(self, seen: Seen) -> Step:
        """The server's next step."""
        if is_summary(seen):
            return Answer(text=SUMMARY, count_input=True, output_tokens=100)
        place = (self.prompt, self.step)
        kind = self.trouble.pop(place, None)
        if kind not in (None, SILENT):
            self.rejected.append(seen)
        match kind:
            case "text":
                # Anthropic's words, which many gateways repeat without a code.
                return Fail(
                    400,
                    f'{{"message":"prompt is too long: {self.window + 9} tokens > {self.window} maximum"}}',
                )
            case "code":
                error = {"message": "Bad request.", "code": "context_length_exceeded"}
                return Fail(400, json.dumps({"error": error}))
            case "stream":
                return ErrorEvent(text="Half of an ans", kind="overflow")
        self.step += 1
        self.answers.append(place)
        thinking = "Let me see." if self.prompt % 5 == 0 else ""
        if place[1] == 0:
            calls = tuple(
                Call(name, json.dumps({"path": f"src/file{self.prompt}.py"}), f"call_{self.prompt}_{name}")
                for name in (("read", "run") if self.prompt % 7 == 0 else ("read",))
            )
            return Answer(text=answered(place), thinking=thinking, calls=calls, count_input=True)
        if kind == SILENT:
            return Answer(text=answered(place), input_tokens=self.window + 200)
        return Answer(text=answered(place), thinking=thinking, count_input=True, chunk_chars=40)
