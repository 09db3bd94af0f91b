"""What the specs' prompts ask for, as patterns of the specs' words or of words with the same meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping

MERGES = {
    # docs/specs.md, "go-agent.md": "merge the old summary with the new messages, producing a single coherent
    # document. This prevents information loss"; docs/specs.md, "opal.md": "merge new information rather than
    # re-summarize from scratch".
    "merge": r"\bmerge\b",
    "a single document": r"\b(one|single)( coherent)? (summary|document)\b",
    "not from scratch": r"\bnot (re-?)?summari[sz]e the (old|earlier |previous )?summary\b|\bfrom scratch\b",
    "no information is lost": r"\b(keep|preserve) (all )?(what |that )?(it|the (old |earlier )?summary)\b",
    "new information": r"\badd\b[^.]*\bnew\b",
    "what is done moves": r"\b(finished|completed)\b[^.]*\bdone\b",
    "next steps are of today": r"\b(bring|update)\b[^.]*\bnext\b",
}
"""What a prompt with an earlier summary must ask for; the last two keep the spec's own sections true."""

SUMMARISES = {
    # docs/specs.md, "opal.md", "Anti-continuation measures": its rules in the user prompt, and why the
    # transcript is tagged.
    "do not continue": r"\bdo not continue the conversation\b",
    "do not answer": r"\bdo not answer\b",
    "do not act": r"\bdo not call tools\b",
    "data, not dialogue": r"\b(is|are|as) data\b",
    "a summary alone": r"\bnothing before or after\b",
}

PREFIX = {
    # docs/specs.md, "opal.md", "Turn-prefix summary".
    "attempted": r"\bwhat was attempted\b",
    "intermediate results": r"\bintermediate results\b",
}

EVMTS = {
    # docs/specs-evmts-opencode.md, "evmts-32.md", "compaction-prompt".
    "KEY DECISIONS": ("important choices", "made", "conversation"),
    "FILE CONTEXT": ("files", "read", "edited", "created"),
    "CODE CHANGES": ("modif", "code"),
    "ERRORS & SOLUTIONS": ("errors", "how", "resolved"),
    "CURRENT STATE": ("user", "working on"),
}
"""Under each heading, words of what the spec wants there."""

OPENCODE_TASK = {
    # docs/specs-evmts-opencode.md, "opencode.md", "Default Summary Prompt".
    "a detailed prompt": r"\bdetailed prompt\b",
    "for continuing the conversation above": r"\bcontinu.*\bconversation above|\babove\b.*\bcontinu",
    "helpful information": r"\bhelp",
    "what we did": r"\bwhat we did\b",
    "what we're doing": r"\bwhat we('| a)re doing\b",
    "which files": r"\bfiles we('| a)re working on\b",
    "what is next": r"\bwhat we('| a)re going to do next\b",
    "a new session has no access": r"\bnew session will not (see|have access to)\b",
}

OPENCODE_AGENT = {
    # docs/specs-evmts-opencode.md, "opencode.md", "Compaction Agent Prompt".
    "detailed but concise": r"\bdetailed\b.*\bconcise\b",
    "completed actions": r"\bcompleted\b",
    "work in progress": r"\b(in progress|under way)\b",
    "modified files": r"\bmodified\b",
    "technical decisions with rationale": r"\btechnical decisions\b.*\b(rationale|reasons)\b",
    "upcoming tasks": r"\b(upcoming|next)\b",
    "requirements or constraints": r"\brequire\w*\b.*\b(constraints|rules out)\b",
    "persistent preferences": r"\bpreferences that (persist|last)\b|\bpersistent preferences\b",
    "comprehensive": r"\b(comprehensive|whole context)\b",
    "quickly understood": r"\bquick",
}


def missing(prompt: str, points: Mapping[str, str]) -> list[str]:
    """The points that a prompt does not ask for."""
    words = " ".join(prompt.split()).lower()
    return [point for point, pattern in points.items() if re.search(pattern, words) is None]


def task_of(prompt: str) -> str:
    """What a prompt asks for, without the data before it."""
    return prompt[max(prompt.rfind(end) + len(end) for end in ("</conversation>", "</previous-summary>")) :]
