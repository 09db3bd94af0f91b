import assert from "node:assert/strict";
import { test } from "node:test";
import { brief, count, oneLine, plain, plural, inScript } from "../../../../editors/vscode/src/plain.ts";
import { lineOf, partsOf, wholeText } from "../../../../editors/vscode/src/said.ts";
import { linesOf } from "../../../../editors/vscode/src/transcript.ts";

test("controls and marks that reorder are shown by their code points", () => {
  assert.equal(plain("a\u202eb\u0000c\u001b[31m\u200bd\ufeff"), "a⟨202E⟩b⟨0000⟩c⟨001B⟩[31m⟨200B⟩d⟨FEFF⟩");
});

test("lines and tabs stay, whatever ends the lines", () => {
  assert.equal(plain("a\r\nb\rc\n\td"), "a\nb\nc\n\td");
});

test("a line is one line of at most so many code points, and no character is cut", () => {
  assert.equal(oneLine("  a\n\n b  "), "a b");
  assert.equal(oneLine("😀".repeat(10), 4), "😀😀😀…");
});

test("numbers read as people write them", () => {
  assert.deepEqual([0, 999, 1000, 82140, 1234567].map(count), ["0", "999", "1,000", "82,140", "1,234,567"]);
  assert.deepEqual([0, 999, 1234, 15903, 158412, 1234567].map(brief), ["0", "999", "1.2k", "16k", "158k", "1.2M"]);
  assert.deepEqual([plural(1, "message"), plural(2, "message")], ["1 message", "2 messages"]);
});

test("a value in a page cannot end its element", () => {
  const hostile = ["</script><script>alert(1)</script><!--", "a\u2028b"];
  assert.ok(!inScript(hostile).includes("<"));
  assert.deepEqual(JSON.parse(inScript(hostile)), hostile);
});

const CALL = { role: "assistant", content: [{ type: "text", text: "Look:" }, { type: "tool_call", call_id: "1", name: "read", arguments: { path: "a.py" } }] };

test("a message in a line names its calls", () => {
  assert.equal(lineOf(CALL), "Look: → read");
  assert.equal(lineOf({ role: "assistant", content: [CALL.content[1]!] }), "→ read a.py");
  assert.equal(lineOf({ role: "tool", content: [{ type: "tool_result", call_id: "1", content: "gone", is_error: true }] }), "← failed: gone");
});

test("a message of any shape is read without a fall", () => {
  for (const odd of [undefined, null, 1, "x", [], {}, { content: 1 }, { content: [null, 1, {}, { type: 3 }, { type: "text" }] }]) {
    assert.equal(typeof lineOf(odd), "string");
    assert.equal(typeof wholeText(odd), "string");
    assert.ok(Array.isArray(partsOf(odd)));
  }
});

test("a conversation has its compactions as rules between what was said", () => {
  const compaction = { messages_removed: 41, tokens_before: 158412, tokens_after: 15903, retention: { score: 0.87, kept: 1, lost: [] } };
  const lines = linesOf([
    { entry_id: "e1", kind: "message", at: 0, in_context: true, message: { role: "user", content: "hi" } },
    { entry_id: "e2", kind: "compaction", at: 0, in_context: true, compaction: compaction as never },
    { entry_id: "e3", kind: "prune", at: 0, in_context: false },
  ]);

  assert.deepEqual(lines, [
    { id: "e1.0", role: "user", text: "hi" },
    { id: "e2", role: "rule", text: "compacted 41 messages · 158k → 16k · kept 87 % of the repeated details" },
  ]);
});

test("a conversation names the other client that sent a prompt, and says which compaction was taken back", () => {
  const compaction = { messages_removed: 1, tokens_before: 9, tokens_after: 5, retention: null };
  const lines = linesOf(
    [
      { entry_id: "e1", kind: "message", at: 0, in_context: true, message: { role: "user", content: "theirs" } },
      { entry_id: "e2", kind: "message", at: 0, in_context: true, message: { role: "assistant", content: "hm" } },
      { entry_id: "e3", kind: "message", at: 0, in_context: true, message: { role: "user", content: "mine" } },
      { entry_id: "c1", kind: "compaction", at: 0, in_context: false, compaction: compaction as never },
    ],
    new Map([["e1", "compactd.nvim"]]),
  );

  assert.deepEqual(
    lines.map(({ who, mark }) => who ?? mark ?? ""),
    ["You (compactd.nvim)", "", "", "no longer in force"],
  );
});
