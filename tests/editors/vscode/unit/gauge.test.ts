import assert from "node:assert/strict";
import { test } from "node:test";
import { gauge, hover } from "../../../../editors/vscode/src/gauge.ts";
import type { AgentEvent, StateResult, TokenUsage } from "../../../../editors/vscode/src/protocol.ts";
import { after, hasGap, started, withState, type Status } from "../../../../editors/vscode/src/status.ts";

const USAGE: TokenUsage = {
  prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0,
  last_prompt_tokens: 81902, current_context_tokens: 82140, current_context_source: "mixed", context_window: 200000,
  context_window_confidence: "fact", threshold_tokens: 160000, percent: 41.07, decision: "fits", epoch: 1,
};
const NEW: Status = started({
  session_id: "s1", resumed: false, read_only: false, model: "anthropic/claude-opus-4-5", title: "Mend the cache", context_window: 200000,
  token_usage: USAGE, message_count: 3, seq: 0, warnings: [],
});
const STATE = {
  session_id: "s1", status: "idle", title: "Mend the cache", model: "anthropic/claude-opus-4-5", message_count: 3, tools: [], token_usage: USAGE, queued: 0,
  budget: {
    base: { value: 81902, source: "report" }, trailing: { value: 238, source: "estimate" }, over: { value: false, source: "" },
    window: { value: 200000, source: "registry" }, threshold: { value: 160000, source: "80% of the cap" },
  },
  compaction: { enabled: true, running: false, count: 0, tokens_saved: 0, history: [], settings: {} },
} as unknown as StateResult;
const READY = { kind: "ready" } as const;
const event = (more: object): AgentEvent => ({ session_id: "s1", seq: 1, ...more }) as AgentEvent;

test("the gauge is a circle and a percentage, and its colour is nothing while all is well", () => {
  const shown = gauge(READY, withState(NEW, STATE));

  assert.equal(shown.text, "◑ 41 %");
  assert.equal(shown.colour, "none");
  assert.equal(shown.label, "Context 41 percent full: 82,140 of 200,000 tokens.");
});

test("the hover says where each number comes from", () => {
  assert.deepEqual(hover(withState(NEW, STATE)), [
    "used 82,140 tokens: 81,902 as the provider reported + 238 estimated after it",
    "window 200,000: fact (registry)",
    "compacts at 160,000 (80% of the cap)",
    "anthropic/claude-opus-4-5 · session s1",
  ]);
});

test("the hover says what the session cost, if that is known", () => {
  const costs = (billed: number | null) => hover({ ...NEW, usage: { ...USAGE, cost: { billed, last: 0.1 } } });

  assert.ok(costs(1.234).includes("cost $1.23 so far, at list prices"));
  assert.ok(!costs(null).some((line) => line.startsWith("cost")));
});

test("due is yellow and over is red, and both are said in words", () => {
  const due = { ...NEW, usage: { ...USAGE, decision: "due" as const } };
  const over = withState(due, { ...STATE, token_usage: { ...USAGE, decision: "over" } });

  assert.equal(gauge(READY, due).colour, "warning");
  assert.match(gauge(READY, due).label, /It compacts before the next request\./);
  assert.equal(gauge(READY, over).colour, "error");
  assert.match(gauge(READY, over).label, /The next request would not fit\./);
});

test("a guessed window shows its doubt", () => {
  const shown = gauge(READY, { ...NEW, usage: { ...USAGE, percent: 63, context_window_confidence: "guess" } });

  assert.equal(shown.text, "◕ ~63 %");
  assert.equal(shown.colour, "warning");
});

test("without a window there is the size alone", () => {
  assert.equal(gauge(READY, { ...NEW, usage: { ...USAGE, percent: null, context_window: null } }).text, "○ 82k");
});

test("a compaction is a spinner with its fraction until it ends", () => {
  const begun = after(NEW, event({ type: "compaction_start", compaction_id: "c1", trigger: "manual", message_count: 3, tokens_before: 1 }));
  const half = after(begun, event({ type: "compaction_progress", compaction_id: "c1", phase: "summarise", fraction: 0.426 }));
  const failed = after(half, event({ type: "compaction_end", compaction_id: "c1", status: "failed", error: { code: 1, message: "no room" } }));

  assert.equal(gauge(READY, half).text, "$(loading~spin) compacting 43 %");
  assert.match(gauge(READY, half).label, /^Compacting, 43 percent done\./);
  assert.equal(failed.compacting, null);
  assert.equal(gauge(READY, failed).colour, "error");
  assert.match(gauge(READY, failed).tooltip, /failed: no room/);
});

test("a session that another program has open has a lock, one that is only looked at has none", () => {
  assert.equal(gauge(READY, { ...NEW, readOnly: true, held: true }).text, "$(lock) ◑ 41 %");
  assert.equal(gauge(READY, { ...NEW, readOnly: true }).text, "◑ 41 %");
});

test("words of others draw no icons: the text holds none of them", () => {
  const shown = gauge(READY, { ...NEW, model: "$(trash)\u202e", failed: "$(flame)" });

  assert.equal(shown.text, "◑ 41 %");
  assert.match(shown.tooltip, /\$\(trash\)⟨202E⟩/);
});

test("a daemon that is not there is said in the gauge", () => {
  assert.equal(gauge({ kind: "off" }, null).text, "○ compactd");
  assert.deepEqual(gauge({ kind: "failed", message: "compactd was not found." }, NEW).colour, "error");
  assert.equal(gauge({ kind: "waiting", delayMs: 250 }, NEW).colour, "warning");
});

test("an event that was missed is known by its number", () => {
  assert.equal(hasGap({ ...NEW, seq: 4 }, event({ type: "usage_update", seq: 5 })), false);
  assert.equal(hasGap({ ...NEW, seq: 4 }, event({ type: "usage_update", seq: 7 })), true);
});
