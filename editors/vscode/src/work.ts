/** Where the work of a session stands, as lines for the context's page. All of it is plain text. */

import { count, oneLine, plural } from "./plain.ts";
import type { FileChange, PlanTask, Work, WorkCheck } from "./protocol.ts";

/** One line about the work. */
export interface WorkRow {
  /** What the line is about; empty if it is about the same as the line before. */
  readonly label: string;
  readonly text: string;
  /** Words after the text; empty where there are none. */
  readonly note: string;
  /** The message that says so; null where none is named. */
  readonly entry: string | null;
  readonly needsAttention: boolean;
}

type Unlabelled = Omit<WorkRow, "label">;

const MOST = { constraints: 3, tasks: 8, files: 8, checks: 5, errors: 5, attempts: 2, decisions: 3 };
const MOST_CHARS = 400;

const STATUS: { readonly [status in PlanTask["status"]]: string } = { open: "open", in_progress: "in progress", done: "done", dropped: "dropped" };
const CHECKS: { readonly [kind in WorkCheck["kind"]]: string } = { test: "tests", build: "build", lint: "lint", types: "type check", other: "check" };
const OUTCOMES: { readonly [outcome in WorkCheck["outcome"]]: string } = { passed: "passed", failed: "failed", unknown: "ended, result unknown" };

/** The lines for the state of the work, without the kinds that are empty. Of each kind the newest are shown. */
export function workRows(work: Work): WorkRow[] {
  const kinds: readonly (readonly [string, readonly Unlabelled[]])[] = [
    ["goal", work.goal === null ? [] : [line(work.goal)]],
    ["request", work.request === null || work.request === work.goal ? [] : [line(work.request)]],
    ["constraints", newest(work.constraints, MOST.constraints, "constraint", (each) => line(each.text, each.entry_id))],
    ["plan", planRows(work.plan)],
    ["files", newest(work.changes, MOST.files, "changed file", fileRow)],
    ["checks", newest(distinct(work.checks.map(checkRow)), MOST.checks, "check", (row) => row)],
    ["open errors", newest(work.open_errors, MOST.errors, "open error", (each) => ({ ...line(`${each.text} (${each.command})`, each.entry_id), needsAttention: true }))],
    ["failed", newest(work.failed_attempts, MOST.attempts, "failed attempt", (each) => line(each.text, each.entry_id))],
    ["decisions", newest(work.decisions, MOST.decisions, "decision", (each) => line(each.was ? `${each.text} (before: ${each.was})` : each.text, each.entry_id))],
    ["now", work.now === null ? [] : [line(work.now.text, work.now.entry_id)]],
  ];
  return kinds.flatMap(([label, rows]) => rows.map((row, at) => ({ label: at === 0 ? label : "", ...row })));
}

/** The state of the work in a few words, for the closed section. */
export function workInBrief(work: Work): string {
  const done = work.plan.filter((task) => task.status === "done").length;
  const words = [
    work.plan.length > 0 ? `${count(done)} of ${plural(work.plan.length, "task")} done` : "",
    work.changes.length > 0 ? plural(work.changes.length, "changed file") : "",
    work.open_errors.length > 0 ? plural(work.open_errors.length, "open error") : "",
  ].filter((each) => each !== "");
  return words.length > 0 ? words.join(" · ") : oneLine(work.goal ?? "nothing yet", 80);
}

/** The last `most` of the items. If there are more, a line before them says how many. */
function newest<T>(items: readonly T[], most: number, noun: string, rowOf: (item: T) => Unlabelled): Unlabelled[] {
  const rows = items.slice(-most).map(rowOf);
  return items.length > most ? [line(`${plural(items.length, noun)}, the last ${most}:`), ...rows] : rows;
}

/** How many tasks are done, and the tasks in their order: of too many, the first unfinished and the last finished. */
function planRows(plan: readonly PlanTask[]): Unlabelled[] {
  if (plan.length === 0) return [];
  const isFinished = (task: PlanTask) => task.status === "done" || task.status === "dropped";
  const unfinished = plan.filter((task) => !isFinished(task)).slice(0, MOST.tasks);
  const room = MOST.tasks - unfinished.length;
  const finished = room > 0 ? plan.filter(isFinished).slice(-room) : [];
  const shown = plan.filter((task) => unfinished.includes(task) || finished.includes(task));
  const done = plan.filter((task) => task.status === "done").length;
  const some = shown.length < plan.length ? `, ${shown.length} of them shown` : "";
  return [line(`${count(done)} of ${plural(plan.length, "task")} done${some}`), ...shown.map((task) => line(`${STATUS[task.status] ?? task.status}: ${task.text}`, task.entry_id))];
}

function fileRow(change: FileChange): Unlabelled {
  const kind = change.kind === "edited" ? plural(change.edits, "edit") : change.kind;
  const note = [kind, change.committed ? "committed" : "uncommitted", change.checked ? "checked" : "unchecked"].join(", ");
  return { ...line(change.path, change.last_entry_id), note };
}

function checkRow(check: WorkCheck): Unlabelled {
  const text = `${CHECKS[check.kind] ?? check.kind} ${OUTCOMES[check.outcome] ?? check.outcome}: ${check.command}`;
  return { ...line(text, check.entry_id), note: check.stale ? "files changed since" : "" };
}

/** The rows without repetitions: two checks of one call may have the same row. */
function distinct(rows: readonly Unlabelled[]): Unlabelled[] {
  return [...new Map(rows.map((row) => [JSON.stringify(row), row])).values()];
}

function line(text: string, entry: string | null = null): Unlabelled {
  return { text: oneLine(text, MOST_CHARS), note: "", entry, needsAttention: false };
}
