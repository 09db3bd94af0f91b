import assert from "node:assert/strict";
import { test } from "node:test";
import type { PlanTask, Work } from "../../../../editors/vscode/src/protocol.ts";
import { workInBrief, workRows } from "../../../../editors/vscode/src/work.ts";

const NOTHING: Work = { goal: null, request: null, constraints: [], plan: [], changes: [], checks: [], decisions: [], failed_attempts: [], open_errors: [], now: null };

const task = (text: string, status: PlanTask["status"]): PlanTask => ({ text, status, entry_id: "e1" });
const said = (work: Partial<Work>) => workRows({ ...NOTHING, ...work }).map((row) => [row.label, row.text]);
const numbered = (word: string) => [1, 2, 3, 4, 5].map((n) => ({ text: `${word} ${n}`, was: null, entry_id: `e${n}` }));

test("of nothing there is no line", () => {
  assert.deepEqual(workRows(NOTHING), []);
  assert.equal(workInBrief(NOTHING), "nothing yet");
});

test("a request that is the goal is said once", () => {
  assert.deepEqual(said({ goal: "Do it.", request: "Do it." }), [["goal", "Do it."]]);
  assert.deepEqual(said({ goal: "Do it.", request: "Now test it." }), [["goal", "Do it."], ["request", "Now test it."]]);
});

test("a line says what is known of a task, a file, a check, an error, a decision and the step", () => {
  const rows = workRows({
    ...NOTHING,
    plan: [task("find it", "done"), task("mend it", "in_progress")],
    changes: [
      { path: "a.py", kind: "edited", edits: 3, last_entry_id: "e2", committed: true, checked: true },
      { path: "b.py", kind: "created", edits: 1, last_entry_id: "e3", committed: false, checked: false },
    ],
    checks: [{ kind: "test", command: "pytest", outcome: "passed", entry_id: "e4", stale: true }, { kind: "test", command: "pytest", outcome: "passed", entry_id: "e4", stale: true }],
    open_errors: [{ text: "no space", command: "cp a b", entry_id: "e5" }],
    decisions: [{ text: "a queue", was: "recursion", entry_id: "e6" }],
    now: { text: "I look.", entry_id: "e7" },
  });

  assert.deepEqual(rows.map((row) => [row.label, row.text, row.note, row.entry]), [
    ["plan", "1 of 2 tasks done", "", null],
    ["", "done: find it", "", "e1"],
    ["", "in progress: mend it", "", "e1"],
    ["files", "a.py", "3 edits, committed, checked", "e2"],
    ["", "b.py", "created, uncommitted, unchecked", "e3"],
    ["checks", "tests passed: pytest", "files changed since", "e4"],
    ["open errors", "no space (cp a b)", "", "e5"],
    ["decisions", "a queue (before: recursion)", "", "e6"],
    ["now", "I look.", "", "e7"],
  ]);
  assert.deepEqual(rows.filter((row) => row.needsAttention).map((row) => row.label), ["open errors"]);
});

test("of many the newest are shown, and all are counted", () => {
  assert.deepEqual(said({ constraints: numbered("rule"), failed_attempts: numbered("try"), decisions: numbered("choice") }), [
    ["constraints", "5 constraints, the last 3:"], ["", "rule 3"], ["", "rule 4"], ["", "rule 5"],
    ["failed", "5 failed attempts, the last 2:"], ["", "try 4"], ["", "try 5"],
    ["decisions", "5 decisions, the last 3:"], ["", "choice 3"], ["", "choice 4"], ["", "choice 5"],
  ]);
});

test("of a long plan the first unfinished and the last finished tasks are shown, in their order", () => {
  const later = [1, 2, 3, 4].map((n) => task(`later ${n}`, "open"));
  const plan = [...[1, 2, 3, 4, 5, 6, 7].map((n) => task(`done ${n}`, "done")), task("left", "dropped"), task("now", "in_progress"), ...later];

  assert.deepEqual(said({ plan }).map(([, text]) => text), [
    "7 of 13 tasks done, 8 of them shown", "done: done 6", "done: done 7", "dropped: left", "in progress: now", "open: later 1", "open: later 2", "open: later 3", "open: later 4",
  ]);
  assert.deepEqual(said({ plan: [plan[0]!, ...later, ...later, task("last", "open")] }).length, 9);
});

test("what others wrote is one line of text that hides nothing", () => {
  const [row] = workRows({ ...NOTHING, now: { text: "one\n\u001b[31mtwo\u202e <b>three</b>", entry_id: "e1" } });

  assert.equal(row?.text, "one ⟨001B⟩[31mtwo⟨202E⟩ <b>three</b>");
  assert.equal(workRows({ ...NOTHING, goal: "x".repeat(2000) })[0]?.text.length, 400);
});

test("the closed section says how far it is, or the goal", () => {
  const work: Work = { ...NOTHING, goal: "Mend\nit.", plan: [task("a", "done"), task("b", "open")], open_errors: [{ text: "x", command: "y", entry_id: "e1" }] };

  assert.equal(workInBrief(work), "1 of 2 tasks done · 1 open error");
  assert.equal(workInBrief({ ...NOTHING, goal: "Mend\nit." }), "Mend it.");
});
