"""Breaks on purpose: `python -m tests.faults.breaks` makes each in a copy of the daemon. What finds it?

A break is an edit of one place of the source. What is to find it runs on the copy: the simulation from seed 1
on, or one file of tests. Exit code 1 where a break was found by nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "server" / "compactd"
SIMULATION = "simulation"
SHARING = "simulation of several clients"
POSTGRES = "unit/storage/test_postgres.py"
FLEET = "e2e/fleet/test_two_nodes.py"
PATIENCE_S = 240
QUICK_S = 20


class Break(Struct, frozen=True):
    """One wrong edit."""

    name: str
    file: str
    """The file's path below server/compactd."""
    old: str
    new: str
    found_by: str = SIMULATION
    """One of the two simulations, or a file below tests."""
    is_slow: bool = False
    """Needs longer than `QUICK_S` to be found."""
    is_system: bool = False
    """Whether the tests that find it are those of `make test-system`."""


BREAKS = (
    Break(
        "no fsync",
        "storage/journal_file.py",
        "                self._sync(self._fd)\n",
        "                pass\n",
    ),
    Break(
        "acknowledged before it is written",
        "storage/journal.py",
        "            self._start_batch(loop)\n            failure = await self._wait(batch, loop)\n"
        "        for",
        "            self._start_batch(loop)\n        for",
    ),
    Break(
        "renamed before it is synced",
        "storage/files.py",
        "            if durable:\n                disk.sync(fd)\n"
        "        finally:\n            disk.close(fd)\n        disk.rename(beside, path)\n",
        "            disk.rename(beside, path)\n            if durable:\n                disk.sync(fd)\n"
        "        finally:\n            disk.close(fd)\n",
        "faults/test_found.py",
    ),
    Break(
        "a torn tail is accepted",
        "storage/folder.py",
        "            size_bytes=content.end,\n",
        "            size_bytes=len(data),\n",
    ),
    Break(
        "the checksum is ignored",
        "storage/journal_records.py",
        """            or not starts(b',"crc":"%08x"}' % crc32(view[pos:tail]), tail, end)\n""",
        """            or not starts(b',"crc":"', tail, end)\n""",
        "unit/storage/test_records.py",
    ),
    Break(
        "a compaction is committed on a stale path",
        "compaction/run.py",
        "        parent=state.leaf,\n        first_kept=first_kept,\n",
        "        parent=leaf,\n        first_kept=first_kept,\n",
        "faults/test_found.py",
    ),
    Break(
        "a wake-up of the writer is lost",
        "storage/journal.py",
        "            self._mark_lost(batch, failure)\n        self._start_batch(done.get_loop())\n",
        "            self._mark_lost(batch, failure)\n",
    ),
    Break(
        "the lock is not taken",
        "storage/locks.py",
        "            if disk.lock(fd):\n",
        "            if disk.lock(fd) or True:\n",
    ),
    Break(
        "the index is trusted without its journal",
        "storage/search_index.py",
        "            if known is not None and (known[1] != first or known[2] > os.fstat(fd).st_size):\n",
        "            if known is not None and False:\n",
        "unit/storage/test_search_index.py",
    ),
    Break(
        "writes that wait are dropped at the end of input",
        "storage/journal.py",
        "            self._is_closed = True\n            self._start_batch(loop)\n",
        "            self._is_closed = True\n            self._queue.clear()\n",
    ),
    Break(
        "undo leaves the epoch as it was",
        "session/undo.py",
        "target=step.id, epoch=session.state.epoch + 1)",
        "target=step.id, epoch=session.state.epoch)",
    ),
    Break(
        "a redaction misses the index",
        "storage/journal_file.py",
        "            drop_index(self._path.parent, self._disk)\n",
        "",
    ),
    Break(
        "the index comes back after a redaction",
        "storage/journal_file.py",
        "            self._disk.sync_folder(self._path.parent.parent)\n",
        "",
    ),
    Break(
        "what another process wrote is acknowledged without a sync",
        "storage/folder.py",
        '            is_synced=durability != "disk",\n',
        "            is_synced=True,\n",
        "faults/test_found.py",
    ),
    Break(
        "the names of new files are not synced",
        "storage/journal_file.py",
        "                    self._disk.sync_folder(folder)\n",
        "                    pass\n",
    ),
    Break(
        "a half-kept write of several records is damage",
        "storage/journal_records.py",
        "    damage = Damage(line=line_number, after=tuple(after)) if after and not is_torn else None\n",
        "    damage = Damage(line=line_number, after=tuple(after)) if after else None\n",
        "faults/test_found.py",
    ),
    Break(
        "a session that could not begin keeps its lock",
        "session/manager.py",
        "            await journal.close()  # otherwise this process would keep its lock\n",
        "",
        "faults/test_found.py",
    ),
    Break(
        "a failed sync is asked again",
        "storage/journal_file.py",
        "            self._cut_back()\n            return DiskFailure(errno=refused.errno, is_broken=True)\n",
        "            return DiskFailure(errno=refused.errno, is_broken=False)\n",
    ),
    Break(
        "the second line is unmarked",
        "core/text/quoting.py",
        '    return "\\n".join(\n'
        '        mark + neutralise(line) if line and not line.isspace() else "" for line in '
        "_LINE_ENDS.split(text)\n"
        "    )",
        '    return mark + "\\n".join(\n'
        '        neutralise(line) if line and not line.isspace() else "" for line in '
        "_LINE_ENDS.split(text)\n"
        "    )",
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "a heading is quoted as it stands",
        "core/text/quoting.py",
        '    r"\\#{2,6}(?:\\s|$)"\n',
        '    r"\\#{9}(?:\\s|$)"\n',
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "a carriage return hides a line's end",
        "core/text/quoting.py",
        'r"\\r\\n|[\\n\\r\\v\\f',
        'r"\\r\\n|[\\n\\v\\f',
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "a reference is quoted as it stands",
        "core/text/quoting.py",
        "(?:e\\d|{_OUR_FRAMES}))",
        "(?:zz|{_OUR_FRAMES}))",
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "a quotation takes the square of its length",
        "core/text/quoting.py",
        "    found = _LEADING.match(line)\n",
        '    found = _LEADING.match(line) if re.search(_LEADING.pattern.replace("*+", '
        '"*"), line, 2) else None\n',
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "a pasted line sets a limit",
        "core/extract/sections.py",
        "place.role != USER or not conversation.is_typed(place):",
        "place.role != USER:",
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a tool's line in the record is unmarked",
        "core/extract/sections.py",
        'conversation.quote(line, "tool" if is_foreign else "assistant")',
        'conversation.quote(line, "assistant")',
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a program's note in the record is unmarked",
        "core/extract/sections.py",
        '"assistant" if is_own else "unknown"',
        '"assistant"',
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "another's text in the role assistant is the model's",
        "core/extract/lines.py",
        'message.role == "assistant" and author_of(message, block) == "assistant"',
        'message.role == "assistant"',
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a block ends at its first closing tag",
        "core/authors/authors.py",
        "            self._closings[found[1].lower()] = found.end()",
        "            self._closings.setdefault(found[1].lower(), found.end())",
        "unit/core/authors/test_authors.py",
    ),
    Break(
        "a synthetic message is typed",
        "core/authors/authors.py",
        "meta.synthetic or meta.type in BY_PROGRAM",
        "meta.type in BY_PROGRAM",
        "unit/core/authors/test_authors.py",
    ),
    Break(
        "a document is typed",
        "core/authors/authors.py",
        "return author if author is not None and author != USER else FILE",
        "return author if author is not None else USER",
        "unit/core/authors/test_authors.py",
    ),
    Break(
        "an unknown tag holds a person's words",
        "core/authors/authors.py",
        "author = _TAG_AUTHORS.get(name, UNKNOWN)",
        "author = _TAG_AUTHORS.get(name, USER)",
        "unit/core/authors/test_authors.py",
    ),
    Break(
        "a result in the transcript is unmarked",
        "core/summary/transcript.py",
        'lines = quote(_cut(text_of_result(block), tool_output_chars), "tool")',
        'lines = quote(_cut(text_of_result(block), tool_output_chars), "assistant")',
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a cut in the transcript leaves an unmarked rest",
        "core/summary/transcript.py",
        "            mark = TOOL_MARK\n        start = end",
        '            mark = ""\n        start = end',
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a file's name ends its list",
        "core/text/summary_format.py",
        "lines = [_quote_path(path) for path in paths]",
        "lines = list(paths)",
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a split turn's steps are not quoted",
        "core/summary/turn_prefix.py",
        "return quote_line(_one_line(told[0].text if told else text, MAX_TEXT_CHARS), author)",
        "return _one_line(told[0].text if told else text, MAX_TEXT_CHARS)",
        "unit/core/text/test_quoting.py",
    ),
    Break(
        "what was lost is named unmarked",
        "core/summary/retention.py",
        "quote_line(line.removeprefix('- '), author)",
        "line.removeprefix('- ')",
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a stub's error is unmarked",
        "core/planning/prune.py",
        "f\"; {quote_line(error, 'tool')}\"",
        'f"; {error}"',
        "unit/core/planning/test_prune.py",
    ),
    Break(
        "an earlier summary ends its tags",
        "core/summary/prompts.py",
        "{_without_frames(previous)}",
        "{previous}",
        "unit/core/summary/test_transcript.py",
    ),
    Break(
        "a client's context ends its tags",
        "core/summary/prompts.py",
        "{_without_frames(part)}",
        "{part}",
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a model's summary is not held against the user's words",
        "core/summary/check.py",
        "self._with_constraints(found.text)",
        "self._with_constraints(body)",
        "properties/test_quoting_laws.py",
        is_slow=True,
    ),
    Break(
        "a rule stays though it forbids nothing",
        "core/summary/attribution.py",
        "            self.negatives == rule.negatives\n            and not self.is_question",
        "            not self.is_question",
        "unit/core/summary/test_attribution.py",
    ),
    Break(
        "a rule's number is not looked at",
        "core/summary/attribution.py",
        "            and rule.numbers <= self.numbers\n",
        "",
        "unit/core/summary/test_attribution.py",
    ),
    Break(
        "a label between the rules ends them",
        "core/summary/attribution.py",
        "                kind = max(outer, _kind(heading.words, rules, mixed), key=_STRICTNESS.index)",
        "                kind = _kind(heading.words, rules, mixed)",
        "unit/core/summary/test_attribution.py",
    ),
    Break(
        "a reference to no message stays",
        "core/summary/attribution.py",
        " if typed.entry_contains_words(one, bare, REFERENCE_SHARE)]",
        "]",
        "unit/core/summary/test_attribution.py",
    ),
    Break(
        "trust holds for any contents",
        "storage/settings_files.py",
        "if trusted == digest_of(data):",
        "if trusted is not None:",
        "security/test_strangers_settings.py",
    ),
    Break(
        "the folder of a file is a clients",
        "session/import_filter.py",
        "working_dir=None,",
        "working_dir=entry.working_dir,",
        "security/test_strangers_sessions.py",
    ),
    Break(
        "an untrusted window may be raised",
        "core/budget/untrusted.py",
        "if value > without:",
        "if value > without and False:",
        "security/test_strangers_settings.py",
    ),
    Break(
        "a handover's messages are not quoted",
        "integrations/acp/handover.py",
        'quote(stretch.text, author).strip("\\n")',
        'stretch.text.strip("\\n")',
        "security/test_acp_authors.py",
    ),
    Break(
        "an agent speaks for the user in the middle of a turn",
        "integrations/acp/turn_messages.py",
        'case "user_message_chunk" if self._is_replay:',
        'case "user_message_chunk":',
        "security/test_acp_authors.py",
    ),
    Break(
        "an agent's replay is the user's word",
        "integrations/acp/turn_messages.py",
        '"meta": {"author": "unknown"}',
        '"meta": {}',
        "security/test_acp_authors.py",
    ),
    Break(
        "a file in a prompt is what the person typed",
        "integrations/acp/turn_messages.py",
        '{"type": "document", "media_type": "text/plain", "text": text}',
        '{"type": "text", "text": text}',
        "security/test_acp_authors.py",
    ),
    Break(
        "arguments too deep for the daemon are kept as they came",
        "integrations/acp/turn_messages.py",
        "if not _is_deep(value):",
        "if True:",
        "security/test_acp_lines.py",
    ),
    Break(
        "half a surrogate pair hides a line from the proxy",
        "integrations/acp/acp_lines.py",
        "    line = decode_as(readable, RpcMessage)\n",
        "    line = None\n",
        "security/test_acp_lines.py",
    ),
    Break(
        "always allows every command",
        "integrations/acp/tools.py",
        "allowed = (name, subject)",
        'allowed = (name, "any")',
        "security/test_acp_tools.py",
    ),
    Break(
        "every file is read without asking",
        "integrations/acp/tools.py",
        "is_allowed=is_inside)",
        "is_allowed=True)",
        "security/test_acp_tools.py",
    ),
    Break(
        "recall reads every folder",
        "integrations/mcp/recall_sessions.py",
        "if stored_folder(sessions, one.session_id) == folder:",
        "if stored_folder(sessions, one.session_id) is not None:",
        "security/test_recall_projects.py",
    ),
    Break(
        "a relative folder is the server's own",
        "storage/paths.py",
        "return str(path.resolve()) if path.is_absolute() else None",
        "return str(path.resolve())",
        "security/test_recall_projects.py",
    ),
    Break(
        "a part of an id crosses projects",
        "integrations/mcp/recall_sessions.py",
        "parts = holding if wanted.all_projects else list(_of_folder(wanted.folder, holding, environ))",
        "parts = holding",
        "security/test_recall_projects.py",
    ),
    Break(
        "the model chooses a session",
        "integrations/mcp/recall.py",
        "                if not wanted.all_projects:\n                    raise NotAllowed(ONE_PROJECT)\n",
        "",
        "security/test_recall_projects.py",
    ),
    Break(
        "an error lists other projects",
        "integrations/mcp/recall.py",
        "    if not wanted.all_projects or not stored:\n",
        "    if not stored:\n",
        "security/test_recall_projects.py",
    ),
    Break(
        "a record is not quoted",
        "integrations/mcp/recall_text.py",
        "    return quote_stretches(shown)\n",
        '    return "\\n".join(part.text for part in shown)\n',
        "security/test_recall_quoted.py",
    ),
    Break(
        "a tool's name ends its header",
        "integrations/mcp/recall_text.py",
        "_NOT_OF_A_NAME.sub('?', tool)[:MAX_RECALL_ID_CHARS]",
        "tool[:MAX_RECALL_ID_CHARS]",
        "security/test_recall_quoted.py",
    ),
    Break(
        "look-ups are hidden by their name",
        "integrations/mcp/recall.py",
        "            if shown == limit or not any(",
        "            if stored.is_lookup or shown == limit or not any(",
        "security/test_recall_quoted.py",
    ),
    Break(
        "a tool's text counts as the model's",
        "core/authors/quoted_message.py",
        "yield from stretches_of(message, block)",
        'yield from (Stretch("assistant", one.text) for one in stretches_of(message, block))',
        "security/test_recall_quoted.py",
    ),
    Break(
        "a program inside the project is run",
        "_runtime/programs.py",
        "    return any(each == project or project in each.parents for each in",
        "    return False and any(each == project or project in each.parents for each in",
        "security/test_hostile_repository.py",
        is_slow=True,
    ),
    Break(
        "hooks import from the folder they run in",
        "integrations/hooks/install.py",
        '    return "-I" if done.stdout.decode("utf-8", "replace").strip() == compactd.__file__ else "-P"\n',
        '    return "-q"\n',
        "security/test_hostile_repository.py",
        is_slow=True,
    ),
    Break(
        "a redaction leaves what the hook keeps",
        "storage/hook_files.py",
        '(STRETCH, GONE, MODULE, PAST, READY, STATE + ".new", MODULE + ".new", READY + ".new")',
        '(STATE + ".new",)',
        "security/test_redact_hooks.py",
        is_slow=True,
    ),
    Break(
        "a fork brings back what was redacted",
        "storage/hook_files.py",
        '            _add_to(self._folder, of_agent, keys, "")\n',
        "            pass\n",
        "security/test_redact_hooks.py",
        is_slow=True,
    ),
    Break(
        "hashes of what was redacted are not keyed",
        "storage/hook_files.py",
        '    return int.from_bytes(hashed.digest(), "little")\n',
        "    return key if hashed.digest() else 0\n",
        "security/test_redact_hooks.py",
        is_slow=True,
    ),
    Break(
        "words in a usage report outlive a redaction",
        "core/redaction/blank_message.py",
        "        usage=_numbers_of(message.usage),\n",
        "        usage=message.usage,\n",
        "unit/core/redaction/test_redaction.py",
    ),
    Break(
        "a body that is packed twice is unpacked",
        "models/providers/decompress.py",
        "        if len(layers) > 1:\n",
        "        if len(layers) > 9:\n",
        "security/test_packed_answers.py",
        is_slow=True,
    ),
    Break(
        "a packed body is unpacked at once",
        "models/providers/decompress.py",
        "self._unpack.decompress(packed, STEP_BYTES)",
        "self._unpack.decompress(packed)",
        "security/test_packed_answers.py",
        is_slow=True,
    ),
    Break(
        "keys that others can read are used",
        "models/providers/keys.py",
        "    if mode & 0o077:\n",
        "    if mode & 0o000:\n",
        "unit/models/test_keys.py",
    ),
    Break(
        "a key goes to a host that ends like the provider's",
        "models/providers/factory.py",
        'address.host.endswith(host) if host.startswith(".") else address.host == host',
        "address.host.endswith(host)",
        "security/test_keys_stay.py",
        is_slow=True,
    ),
    Break(
        "a file that OpenCode read is what the person typed",
        "formats/agents/opencode.py",
        "                author = FILE if is_file else UNKNOWN\n",
        "                author = None\n",
        "security/test_authors_of_files.py",
        is_slow=True,
    ),
    Break(
        "what a program wrote into klaude's session is typed",
        "formats/agents/klaude.py",
        'meta_or_none = Meta(kind="bash_execution") if shell else Meta(author=UNKNOWN)',
        'meta_or_none = Meta(kind="bash_execution") if shell else None',
        "security/test_authors_of_files.py",
        is_slow=True,
    ),
    Break(
        "a flood in one message has no limit",
        "core/constraints/constraints.py",
        "    if len(limits) <= MAX_OF_A_MESSAGE:\n",
        "    if limits:\n",
        "security/test_many_limits.py",
        is_slow=True,
    ),
    Break(
        "a strangers window takes room from pins",
        "core/planning/candidates.py",
        "        target, window = self.inputs.request.target_tokens, self.inputs.standing.summary_window\n",
        "        target, window = self.inputs.request.target_tokens, self.inputs.standing.window\n",
        "security/test_strangers_settings.py",
        is_slow=True,
    ),
    Break(
        "two rules with a label are a log",
        "core/constraints/user_text.py",
        "    if _are_labelled_demands(block, kinds, before):\n        return [True] * len(block)\n",
        "",
        "unit/core/constraints/test_user_text.py",
    ),
    Break(
        "a log that is announced is the user's",
        "core/constraints/user_text.py",
        "_REPORTS.search(lead) is not None",
        "_REPORTS.search(lead) is False",
        "unit/core/constraints/test_user_text.py",
    ),
    Break(
        "an observation without a name is typed",
        "core/authors/authors.py",
        "    if not is_named and begins_as_observation(text):\n",
        "    if False and begins_as_observation(text):\n",
        "unit/core/authors/test_spans.py",
    ),
    Break(
        "an agent's own rows are given back",
        "integrations/hooks/transcript_steps.py",
        "        return _report(message) if meta.author == NOTIFICATION else None",
        "        return message  # whoever wrote it",
        "unit/integrations/test_hook_gives_back.py",
    ),
    Break(
        "two projects share an agent's session id",
        "integrations/acp/links.py",
        "    if stored_folder(sessions, mirror) == folder:\n        return mirror\n",
        "    if stored_folder(sessions, mirror) is not None or folder is None:\n        return mirror\n",
        "security/test_acp_projects.py",
    ),
    Break(
        "an overflow keeps a sixth of the window",
        "core/budget/profiles.py",
        "overflow_keep=KeepShare(divisor=5)",
        "overflow_keep=KeepShare(divisor=6)",
        "parity/test_opal_overflow.py",
    ),
    Break(
        "summaries of a split turn are asked for one after the other",
        "compaction/summarizer.py",
        "        await asyncio.gather(\n"
        "            *(\n"
        "                _answer(summariser, ask, session, tell if at == 0 else None,"
        " is_silent=tell is None)\n"
        "                for at, ask in enumerate(asks)\n"
        "            )\n"
        "        )\n",
        "        [\n"
        "            await _answer(summariser, ask, session, tell if at == 0 else None,"
        " is_silent=tell is None)\n"
        "            for at, ask in enumerate(asks)\n"
        "        ]\n",
        "parity/test_klaude_history.py",
        is_slow=True,
    ),
    Break(
        "the rules of a merge are left out",
        "core/summary/prompts.py",
        "- Keep what it says, unless the conversation corrects or supersedes it.\n"
        "- Add the new progress, decisions, constraints and context.\n"
        "- Move what was finished from what is under way to what is done; drop what no longer blocks.\n"
        '- Bring up to date what has to be done next."""',
        '"""',
        "parity/test_merging.py",
    ),
    Break(
        "an earlier summary is not merged under the sections",
        "core/summary/prompts.py",
        'update=f"{MERGE}\\n\\nUse {IN_THIS_FORM}',
        'update=f"Summarise it in {IN_THIS_FORM}',
        "parity/test_merging.py",
    ),
    Break(
        "an earlier summary is not merged under evmts",
        "core/summary/prompts.py",
        'update=f"{MERGE}\\n\\n{EVMTS_FORM}',
        'update=f"{EVMTS_FORM}',
        "parity/test_merging.py",
    ),
    Break(
        "an earlier summary is not merged under opencode",
        "core/summary/prompts.py",
        'update=f"{MERGE}\\n\\n{OPENCODE_TASK}',
        'update=f"{OPENCODE_TASK}',
        "parity/test_merging.py",
    ),
    Break(
        "an aborted prompt ends without its window",
        "agent/loop.py",
        "                context_window=usage.context_window,\n                stop_reason=stop_reason,",
        '                context_window=None if stop_reason == "aborted" else usage.context_window,\n'
        "                stop_reason=stop_reason,",
        "parity/test_opal_overflow.py",
    ),
    Break(
        "a rejected request waits before it is sent again",
        "agent/loop.py",
        "                most = output_limit(session, done.max_output_tokens)\n",
        "                await asyncio.sleep(3)\n"
        "                most = output_limit(session, done.max_output_tokens)\n",
        "parity/test_opal_at_once.py",
    ),
    Break(
        "a summariser does not see the request that stays",
        "core/summary/input.py",
        "if i.entry_id != plan.merged and i.entry_id not in prefix}",
        "if i.entry_id in plan.removed and i.entry_id not in prefix}",
        "parity/test_opencode_summary.py",
    ),
    Break(
        "the size shown is not the size compared",
        "core/budget/budget.py",
        "            used=used if over else compared,\n",
        "            used=used,\n",
        "parity/test_edges.py",
    ),
    Break(
        "a foreign line stays under a heading of the model's own",
        "core/summary/attribution.py",
        "        return not is_of_facts and not reports_deed(repeated)\n",
        "        return False and not is_of_facts\n",
        "security/test_models_that_launder.py",
    ),
    Break(
        "a foreign line may name a message of the user's",
        "core/summary/attribution.py",
        "    if any(typed.is_forged(one, repeated) for one in named):\n",
        "    if named and is_of_facts and not typed:\n",
        "security/test_models_that_launder.py",
    ),
    Break(
        "any word around a foreign line names its source",
        "core/summary/demand_framing.py",
        "    return _SOURCE.search(around) is None and _DEED.match(before) is None\n",
        "    return around is None\n",
        "unit/core/summary/test_repeated.py",
    ),
    Break(
        "an item of a list is no heading to those below it",
        "core/summary/attribution.py",
        "        return _list_heading(line, item[2], following)\n",
        "        return None if line else _list_heading(line, item[2], following)\n",
        "unit/core/summary/test_attribution.py",
    ),
    Break(
        "an overflow under klaude keeps a fifth of the window",
        "core/budget/profiles.py",
        "overflow_keep=KLAUDE_KEEP",
        "overflow_keep=KeepShare(divisor=5, manual_tokens=None)",
        "parity/test_klaude.py",
    ),
    Break(
        "a summariser sees 500 characters of a tool result",
        "core/budget/rules.py",
        "tool_output_chars: int = 2000",
        "tool_output_chars: int = 500",
        "parity/test_klaude_history.py",
    ),
    Break(
        "a split turn's two summaries change places",
        "core/summary/questions.py",
        "    texts = [text for text, _ in ends]\n",
        "    texts = [text for text, _ in reversed(ends)]\n",
        "parity/test_opal.py",
    ),
    Break(
        "the beginning of a split turn is sent without tags",
        "core/summary/questions.py",
        "                task,\n                conversation(part),",
        '                task,\n                "\\n\\n".join(part) if is_prefix else conversation(part),',
        "parity/test_opal.py",
    ),
    Break(
        "the user's prompt counts for the first summary alone",
        "core/summary/questions.py",
        "compact_prompt=own,",
        "compact_prompt=own if previous is None else None,",
        "parity/test_evmts.py",
    ),
    Break(
        "a hook's context counts for the first summary alone",
        "core/summary/questions.py",
        "context=() if is_prefix else request.context,",
        "context=() if is_prefix or previous is not None else request.context,",
        "parity/test_opencode_summary.py",
        is_slow=True,
    ),
    Break(
        "a turn that prunes is not compacted",
        "agent/turns.py",
        "    if settings.enabled:\n        done = await",
        "    if settings.enabled and not pruned:\n        done = await",
        "parity/test_opencode.py",
    ),
    Break(
        "an agent is told to go on after an overflow",
        "agent/recovery.py",
        "    session.last_sent_epoch = session.state.epoch\n",
        "    session.last_sent_epoch = session.state.epoch\n"
        "    if session.resolved.settings.auto_continue:\n"
        "        from compactd.agent.turns import _go_on\n\n"
        "        await _go_on(session)\n",
        "parity/test_opencode_loop.py",
    ),
    Break(
        "a rejected turn is sent again twice",
        "agent/recovery.py",
        "ATTEMPTS = 3",
        "ATTEMPTS = 2",
        "parity/test_opencode_loop.py",
    ),
    Break(
        "a user's shell command begins no turn for a prune",
        "core/planning/prune.py",
        'if kind_of(message) in ("user", "bash"):',
        'if kind_of(message) == "user":',
        "parity/test_opencode_prune.py",
    ),
    Break(
        "a provider's summary survives a redaction",
        "core/redaction/summaries.py",
        "            entry = msgspec.structs.replace(entry, provider=None)\n",
        "            pass\n",
        "e2e/test_provider_compaction.py",
    ),
    Break(
        "a provider puts words into the user's mouth",
        "formats/messages/provider_summary.py",
        "    if not said.issuperset(_orders(output)):\n",
        "    if False:\n",
        "e2e/test_provider_compaction.py",
    ),
    Break(
        "a provider's summary goes to another endpoint",
        "formats/messages/provider_summary.py",
        " or own.base_url != base_url:\n",
        ":\n",
        "e2e/test_provider_compaction.py",
    ),
    Break(
        "a prepared compaction is used after an undo",
        "compaction/prepare.py",
        "            and state.epoch == self._epoch\n",
        "",
        "properties/test_prepared.py",
    ),
    Break(
        "a prepared compaction is used after a pin",
        "compaction/prepare.py",
        "            and state.pin_marks == self._pins\n",
        "",
        "properties/test_prepared.py",
    ),
    Break(
        "a message that came after the preparation is not counted",
        "compaction/prepare.py",
        "came = items[self._shown :]",
        "came = items[self._shown + 1 :]",
        "properties/test_prepared.py",
    ),
    Break(
        "a redaction leaves the prepared summary until it ends",
        "session/redact.py",
        "    session.drop_preparation()\n",
        "",
        "unit/compaction/test_prepare.py",
    ),
    Break(
        "an audit puts a sub-agent into the conversation with the user",
        "cli/audit/claude_code.py",
        "        if not record.is_sidechain:\n",
        "        if True:\n",
        "unit/cli/audit/test_claude_code_trail.py",
    ),
    Break(
        "requests to GPT-5.6 have no cache breakpoints",
        "session/prompt_cache.py",
        'elif format == "openai_responses" and',
        'elif format == "no" and',
        "e2e/test_prompt_cache.py",
        is_slow=True,
    ),
    Break(
        "the forecast believes that OpenAI caches an unmarked head",
        "session/session.py",
        "rules.head_needs_mark and",
        "False and",
        "e2e/test_prompt_cache.py",
        is_slow=True,
    ),
    Break(
        "an audit forgets that an interrupted request used the cache",
        "cli/audit/line_agents.py",
        "                self._builder.touch(MAIN, place.at)\n",
        "                pass\n",
        "unit/cli/audit/test_other_trails.py",
    ),
    Break(
        "an audit counts a constraint as lost at each compaction",
        "cli/audit/losses.py",
        "        lost_before.update(one.text for one in absent)\n",
        "",
        "unit/cli/audit/test_losses.py",
    ),
    Break(
        "an audit says that a constraint is lost although the summary has its words",
        "cli/audit/losses.py",
        "    return len(wanted & told) >= TOLD_SHARE * len(wanted)\n",
        "    return not wanted\n",
        "unit/cli/audit/test_losses.py",
    ),
    Break(
        "an audit compares a cold first request with a warm one",
        "cli/audit/replay.py",
        " if number else step.usage.cache_read_tokens\n",
        " if number else 0\n",
        "unit/cli/audit/test_replay.py",
    ),
    Break(
        "a sub-agent's words go untagged into another agent's file",
        "formats/files/other_agent.py",
        "                case Text() if not is_summary(message) and looks_typed(message, block):\n",
        "                case Text() if False:\n",
        "unit/cli/test_moving_sessions.py",
    ),
    Break(
        "a text can close its tag in another agent's file",
        "formats/files/other_agent.py",
        '"&lt;", text',
        '"<", text',
        "unit/formats/test_other_agent.py",
    ),
    Break(
        "thinking moves to another provider",
        "formats/files/other_agent.py",
        "                    thinking += 1\n",
        "                    thinking += 1\n                    blocks.append(block)\n",
        "unit/formats/test_other_agent.py",
    ),
    Break(
        "a session that does not fit is handed over whole",
        "cli/agent_files/move.py",
        "context.used > limit",
        "False",
        "unit/cli/test_moving_sessions.py",
    ),
    Break(
        "a session in another agent keeps the usage of its first model",
        "cli/agent_files/move.py",
        "tuple(_without_usage(line) for line in conversation.live)",
        "conversation.live",
        "unit/cli/test_moving_sessions.py",
    ),
    Break(
        "a reduced output keeps its id although another entry took it",
        "session/reduce.py",
        "            session.state.next_id == self._next_id\n            and session",
        "            session",
        "unit/session/test_reduce.py",
    ),
    Break(
        "the view's outputs are not read again after a compaction",
        "session/shown_view.py",
        "        if news.epoch != self._epoch:\n            self._start(news.epoch)\n",
        "",
        "properties/test_reduced_outputs.py",
    ),
    Break(
        "an original outlives the redaction of its message",
        "core/redaction/redaction.py",
        "    entry_ids = with_linked(entries, entry_ids)\n",
        "",
        "properties/test_reduced_outputs.py",
    ),
    Break(
        "the reduced text is found next to its original",
        "session/search.py",
        "    reduced = {(link.block, link.part) for link in links if link.is_exact}\n",
        "    reduced: set[tuple[int, int | None]] = set()\n",
        "e2e/test_reduce.py",
    ),
    Break(
        "an import takes an original for a gap in the numbering",
        "session/import_file.py",
        "Appended | Compacted | Pruned | Reduced)]",
        "Appended | Compacted | Pruned)]",
        "properties/test_reduced_outputs.py",
    ),
    Break(
        "a client gets the events of sessions that it has closed",
        "daemon/sharing/clients.py",
        "        if isinstance(client, Client):\n"
        "            self._subscribed.get(session_id, {}).pop(client, None)\n"
        "        self.note_hooks(session_id)\n"
        "        if self.first_of",
        "        self.note_hooks(session_id)\n        if self.first_of",
        SHARING,
    ),
    Break(
        "a client gets the events of every session",
        "daemon/sharing/clients.py",
        "            return () if self.is_shared else self.connected\n        return tuple",
        "            return self.connected\n        if self.is_shared:\n            return self.connected\n"
        "        return tuple",
        SHARING,
    ),
    Break(
        "a session stays open after its last client",
        "daemon/sharing/clients.py",
        "        for session_id in closing:\n            await self._close_unused(session_id)\n",
        "        for _ in closing:\n            pass\n",
        SHARING,
    ),
    Break(
        "a session is closed although a client has just asked for it",
        "daemon/sharing/clients.py",
        "close(session_id, is_kept=lambda: session_id in self._members)\n        except",
        "close(session_id)\n        except",
        SHARING,
        is_slow=True,
    ),
    Break(
        "the tools of a prompt run at another client than its own",
        "daemon/sharing/clients.py",
        "        if isinstance(first, Client) and self.answers(session_id, first):\n"
        "            return first\n",
        "",
        SHARING,
    ),
    Break(
        "a client that has closed a session is asked for its prompts",
        "daemon/sharing/clients.py",
        "client.is_connected and client not in self._left.get(session_id, ())",
        "client.is_connected",
        "e2e/sharing/test_prompts.py",
    ),
    Break(
        "an import replaces a session that others have open",
        "session/import_update.py",
        "        if may_replace():\n",
        "        if True:\n",
        "e2e/sharing/test_membership.py",
    ),
    Break(
        "any client answers for one that has left",
        "daemon/sharing/clients.py",
        "        answering = (one for one, part in members if part.answers)\n",
        "        answering = (one for one, part in members)\n",
        SHARING,
    ),
    Break(
        "a prompt whose client has left is never given up",
        "daemon/sharing/clients.py",
        "        if owner is None or loop is None or session.is_closed or self.answers(session.id, owner):\n",
        "        if True:\n",
        SHARING,
        is_slow=True,
    ),
    Break(
        "a prompt that waited in the queue is not given up",
        "daemon/sharing/clients.py",
        "        else:\n"
        "            asyncio.get_running_loop().call_later(GRACE_S, self._give_up, session, turn_id)\n"
        "\n"
        "    # --- events",
        "\n    # --- events",
        SHARING,
        is_slow=True,
    ),
    Break(
        "a slow reader is not told that it gets no more",
        "daemon/sharing/clients.py",
        "                one.connection.out.notify_body(event_body(session_id, seq, dropped, None))\n",
        "                _ = dropped\n",
        SHARING,
    ),
    Break(
        "a slow reader loses events that are no deltas",
        "daemon/sharing/client.py",
        "            if droppable:\n                return True\n",
        "            if out.unsent_bytes:\n                return True\n",
        SHARING,
    ),
    Break(
        "a subscriber gets the events before its answer",
        "daemon/sharing/clients.py",
        "        request.after(send)\n",
        "        send()\n",
        SHARING,
    ),
    Break(
        "what a subscriber missed is counted wrong",
        "daemon/sharing/clients.py",
        "        return last - since - len(bodies)\n",
        "        return last - since\n",
        SHARING,
    ),
    Break(
        "numbers of a daemon that has ended are not recognised",
        "daemon/sharing/clients.py",
        "        if since > last:\n            return None\n",
        "        if since > last:\n            return 0\n",
        SHARING,
    ),
    Break(
        "a failed opening keeps its client's membership",
        "daemon/handlers/sessions.py",
        "            clients.undo_join(session_id, before)\n            raise\n",
        "            raise\n",
        SHARING,
    ),
    Break(
        "the prompts of a client that closed its session first are handed over to nobody",
        "daemon/sharing/clients.py",
        "        for session_id in self._members:\n            # Also",
        "        for session_id in self.sessions_of(client):\n            # Also",
        SHARING,
        is_slow=True,
    ),
    Break(
        "the log gives the event that the client has",
        "daemon/sharing/event_log.py",
        "for one in self._recent if one.seq > seq",
        "for one in self._recent if one.seq >= seq",
        SHARING,
    ),
    Break(
        "old messages are forgotten with the other events",
        "daemon/sharing/event_log.py",
        "            if oldest.message is not None:\n",
        "            if False:\n",
        SHARING,
        is_slow=True,
    ),
    Break(
        "an old message comes again without its turn",
        "daemon/sharing/event_log.py",
        ", client=told.client, turn_id=told.turn_id\n",
        ", client=told.client\n",
        SHARING,
        is_slow=True,
    ),
    Break(
        "the log keeps the events of a closed session",
        "daemon/sharing/clients.py",
        "            self._logs.pop(session_id, None)\n            self._subscribed",
        "            self._subscribed",
        SHARING,
    ),
    Break(
        "a session that is half closed keeps its lock",
        "session/manager.py",
        "        except asyncio.CancelledError as error:\n            interrupted = error\n",
        "        except asyncio.CancelledError:\n            raise\n",
        "unit/session/test_closing.py",
    ),
    Break(
        "a closed session takes prompts",
        "session/session.py",
        "        if self.is_closed:\n            raise SessionNotFound(",
        "        if False:\n            raise SessionNotFound(",
        "unit/session/test_closing.py",
    ),
    Break(
        "an append does not check the token",
        "storage/postgres/writer.py",
        "AND token = %(token)s AND head = %(head)s\n    RETURNING 1\n), added",
        "AND head = %(head)s\n    RETURNING 1\n), added",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "a batch whose reply was lost is sent again as it is",
        "storage/postgres/writer.py",
        "if self._in_doubt is None or not self._settle(connection, sent):",
        "if True:",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "a session is taken although its lease lives",
        "storage/postgres/store.py",
        "AND (NOT {live()} OR token = %(token)s OR (%(again)s AND node = %(node)s))\nRETURNING head",
        "\nRETURNING head",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "the server's synchronous_commit = off holds",
        "storage/postgres/pool.py",
        "replace(current_setting('synchronous_commit'), 'off', 'on')",
        "current_setting('synchronous_commit')",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "a commit that its standby does not have is acknowledged",
        "storage/postgres/pool.py",
        "            raise NotReplicated\n",
        "            pass\n",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "the owner of the tables sees the rows of every tenant",
        "storage/postgres/schema.py",
        '        f"ALTER TABLE compactd.{table} FORCE ROW LEVEL SECURITY",\n',
        "",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "a redaction leaves the words that can be searched",
        "storage/postgres/writer.py",
        "            for statement in FORGET_WORDS:\n                connection.execute(statement, named)\n"
        "            row =",
        "            row =",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "roles may not use a table that a migration adds",
        "storage/postgres/schema.py",
        '    _grant_as("nodes", like="sessions"),\n',
        "",
        POSTGRES,
        is_system=True,
    ),
    Break(
        "a commit is not announced",
        "storage/postgres/writer.py",
        "                self._announce()\n                return None\n",
        "                return None\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "a message without an id is sent twice",
        "daemon/fleet/repeats.py",
        "        return all(_decode(message).id for message in messages)\n",
        "        return all(True for _ in messages)\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "requests overtake those that wait for a new writer",
        "daemon/fleet/route.py",
        "        for request in self._pending:\n            if request.call_id is None",
        "        for request in reversed(self._pending):\n            if request.call_id is None",
        FLEET,
        is_system=True,
    ),
    Break(
        "a node answers before it shows what was written",
        "daemon/fleet/forwarder.py",
        "            await session.following.read_to(answer.records)\n",
        "            pass\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "what the writer does with a cancelled request goes on",
        "daemon/fleet/forwarder.py",
        "                served.cancel()\n",
        "                pass\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "a prompt's end comes before its answer",
        "daemon/fleet/live_events.py",
        "            await session.following.read_to(told.records)\n",
        "            pass\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "the prompt of a writer that died goes on for ever",
        "session/manager.py",
        "                session.emit(prompt_lost(turn_id))\n",
        "                pass\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "tools run at the client of the daemon that writes",
        "daemon/app.py",
        "if self.fleet is not None and method != HOOK and self.fleet.is_remote(first):",
        "if self.fleet is not None and method == HOOK and self.fleet.is_remote(first):",
        FLEET,
        is_system=True,
    ),
    Break(
        "a node does not look which sessions it has lost while it was frozen",
        "storage/postgres/leases.py",
        "                may_be_taken = may_be_taken or not is_in_time\n",
        "",
        FLEET,
        is_system=True,
    ),
    Break(
        "what was written while a node was frozen is not sent to its clients",
        "session/manager.py",
        "                    session.following.apply(news)\n",
        "                    pass\n",
        FLEET,
        is_system=True,
    ),
    Break(
        "the event loop asks the database whether a session is stored",
        "session/manager.py",
        "        if self.store.calls is not None:\n            raise SessionNotOpen",
        "        if self.store.calls is not None and False:\n            raise SessionNotOpen",
        FLEET,
        is_system=True,
    ),
)
"""The first twelve are those that every suite of a daemon like this one has to find."""


def broken_copy(one: Break, folder: Path) -> None:
    """The daemon with this break, in `folder`/compactd."""
    shutil.copytree(SOURCE, folder / "compactd", ignore=shutil.ignore_patterns("__pycache__"))
    path = folder / "compactd" / one.file
    text = path.read_text(encoding="utf-8")
    if text.count(one.old) != 1:
        raise SystemExit(f"{one.name}: its place in {one.file} is there {text.count(one.old)} times")
    path.write_text(text.replace(one.old, one.new), encoding="utf-8")


def found(one: Break, seed: int) -> tuple[str, float]:
    """Run the test that should find the break `one`. Return what found it in a few words (empty if nothing
    did) and the seconds that passed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        broken_copy(one, folder)
        if one.found_by in (SIMULATION, SHARING):
            command = ["tests.faults.simulation", "--seed", str(seed), "--minutes", str(PATIENCE_S / 60)]
            command += ["--sharing", "--history", "1000"] if one.found_by == SHARING else []
        else:
            marked = "system" if one.is_system else "not system and not editor"
            whole = ("-m", marked, "--hypothesis-profile=nightly")
            file = str(ROOT / "tests" / one.found_by)
            command = ["pytest", "-x", "-q", "-p", "no:cacheprovider", *whole, file]
        path = os.pathsep.join((str(folder), str(ROOT)))
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", *command],
            env={**os.environ, "PYTHONPATH": path},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S + 60,
        )
    if ran.returncode == 0:
        return "", time.monotonic() - began
    seen = re.findall(r"^(?:FAILED [^ ]*::|seed \d+, step \d+, trace \w+: )(.*)$", ran.stdout, re.MULTILINE)
    assert seen, ran.stdout[-2000:] + ran.stderr[-2000:]
    return f"{one.found_by}: {seen[0][:100]}", time.monotonic() - began


def main() -> int:
    """Exit code 1 where a break was not found."""
    asked = argparse.ArgumentParser(prog="python -m tests.faults.breaks", description=__doc__)
    asked.add_argument("--quick", action="store_true", help=f"only those found in less than {QUICK_S} s")
    asked.add_argument("--only", default="", help="those whose name holds this")
    asked.add_argument("--seed", type=int, default=1, help="the simulation's first")
    asked.add_argument("--json", type=Path, default=None, help="where the results go")
    told = asked.parse_args()
    results: list[dict[str, object]] = []
    for one in BREAKS:
        if told.only in one.name and not (told.quick and one.is_slow):
            by, took_s = found(one, told.seed)
            results.append({"break": one.name, "found_by": by, "took_s": round(took_s, 1)})
            print(f"{'found ' if by else 'MISSED'} {took_s:6.1f} s  {one.name:58} {by}", flush=True)
    if told.json is not None:
        told.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    missed = [result for result in results if not result["found_by"]]
    print(f"{len(results) - len(missed)} of {len(results)} breaks found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
