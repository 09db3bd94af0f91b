import assert from "node:assert/strict";
import { test } from "node:test";
import type { CompactionResult, HistoryEntry } from "../../../../editors/vscode/src/protocol.ts";
import { afterwards, contextText, fatesOf, inWords, plannedText, rowsOf } from "../../../../editors/vscode/src/rows.ts";

const message = (id: string, role: string, text: string, more: Partial<HistoryEntry> = {}): HistoryEntry => ({
  entry_id: id, kind: "message", at: 0, in_context: true, message: { role, content: text }, tokens: 10, ...more,
});
const PLAN = {
  compacted: false, reason: "", compaction_id: null, messages_removed: 2, kept_messages: 1, tokens_before: 4257, tokens_after: 2427, tokens_saved: 1830,
  first_kept_entry_id: "e4", pinned_entry_ids: ["e2"], pruned_tool_results: 0, summary: "## Goal", retention: { score: 1, kept: 3, lost: [] },
} as unknown as CompactionResult;
const ENTRIES = [message("e1", "user", "a"), message("e2", "user", "b"), message("e3", "assistant", "c"), message("e4", "user", "d")];

test("a preview marks what is summarised, pinned and kept", () => {
  assert.deepEqual(rowsOf(ENTRIES, PLAN).map((row) => [row.id, row.fate]), [["e1", "summarised"], ["e2", "pinned"], ["e3", "summarised"], ["e4", "kept"]]);
});

test("an empty tail keeps nothing but what is pinned", () => {
  assert.deepEqual(fatesOf(ENTRIES, { ...PLAN, first_kept_entry_id: null }), ["summarised", "pinned", "summarised", "summarised"]);
});

test("a preview in words has tokens before and after, what goes and what stays", () => {
  assert.equal(inWords(PLAN), "4,257 → 2,427 tokens (saves 1,830) · 2 messages summarised · 1 kept word for word · 1 pinned · keeps 100 % of the repeated details");
});

test("where there is nothing to compact, the daemon's reason is said", () => {
  const none = { ...PLAN, messages_removed: 0, reason: "nothing to compact: all 9 messages are within the 16,000 tokens to keep" };

  assert.equal(inWords(none), "No compaction needed: all 9 messages are within the 16,000 tokens to keep");
  assert.deepEqual(fatesOf(ENTRIES, none), ["kept", "kept", "kept", "kept"]);
});

test("a row says what an entry is, and who keeps it", () => {
  const summary: HistoryEntry = { entry_id: "e5", kind: "compaction", at: 0, in_context: true, compaction: { ...PLAN, compaction_id: "c1" }, tokens: 120 };
  const entries = [summary, message("e4", "user", "d", { pinned: true, pruned_at: 3 }), message("e2", "user", "b", { carried: true }), message("e6", "user", "e")];

  const [first, second, ...others] = rowsOf(entries);
  assert.deepEqual([first?.role, first?.opens, first?.tokens], ["summary", "c1", 120]);
  assert.deepEqual([second?.pinnedBy, second?.isPruned], ["person", true]);
  assert.deepEqual(others.map((row) => row.pinnedBy), ["compaction", null]);
  assert.equal(first?.line, "2 messages summarised · 4,257 → 2,427 tokens");
});

test("both sides of a preview's diff differ in what goes alone", () => {
  assert.equal(contextText(ENTRIES.slice(2)), "## e3 · assistant\n\nc\n\n## e4 · user\n\nd\n");
  assert.equal(plannedText(ENTRIES, PLAN), "## summary\n\n## Goal\n\n## e2 · user\n\nb\n\n## e4 · user\n\nd\n");
});

test("what a compaction did is one line", () => {
  assert.equal(afterwards({ ...PLAN, retention: null }), "Compacted 2 messages: 4,257 → 2,427 tokens");
});
