/** The context as rows for a list, and as a text for the diff editor. Counts and marks are the daemon's own. */

import { count, oneLine, plain, plural } from "./plain.ts";
import type { CompactionResult, HistoryEntry, Original } from "./protocol.ts";
import { lineOf, roleOf, wholeText } from "./said.ts";

/** What becomes of an entry in the compaction that is being looked at. */
export type Fate = "kept" | "pinned" | "summarised" | null;

/** One line of the list. All of it is plain text. */
export interface Row {
  readonly id: string;
  /** `user`, `assistant`, `tool`, `system`, or `summary`. */
  readonly role: string;
  readonly line: string;
  /** Null where nothing was counted. */
  readonly tokens: number | null;
  /** Who keeps it in the context; null where nobody does. */
  readonly pinnedBy: "person" | "compaction" | null;
  readonly isPruned: boolean;
  /** The compaction whose originals stand behind this row. */
  readonly opens: string | null;
  readonly fate: Fate;
  /** 1, or 2 for an original behind a summary. */
  readonly level: number;
}

/** The rows of a context's entries. With `plan`, each says what that compaction would do with it. */
export function rowsOf(context: readonly HistoryEntry[], plan: CompactionResult | null = null): Row[] {
  const fates = plan === null ? null : fatesOf(context, plan);
  return context.map((entry, at) => rowOf(entry, fates?.[at] ?? null));
}

/** The originals behind a summary, as rows below it. */
export function originalRows(originals: readonly Original[]): Row[] {
  return originals.map(({ entry_id: id, message, tokens }) => ({
    id,
    role: roleOf(message),
    line: lineOf(message),
    tokens,
    pinnedBy: null,
    isPruned: false,
    opens: null,
    fate: null,
    level: 2,
  }));
}

/** What a compaction that answered `plan` does with each entry of the context. */
export function fatesOf(context: readonly HistoryEntry[], plan: CompactionResult): Fate[] {
  if (plan.messages_removed === 0) return context.map(() => "kept");
  const pinned = new Set(plan.pinned_entry_ids);
  const first = context.findIndex((entry) => entry.entry_id === plan.first_kept_entry_id);
  const from = first < 0 ? context.length : first;
  return context.map((entry, at) => (at >= from ? "kept" : pinned.has(entry.entry_id) ? "pinned" : "summarised"));
}

/** A preview in a sentence: tokens before and after, what goes and what stays. */
export function inWords(plan: CompactionResult): string {
  if (plan.messages_removed === 0 && plan.pruned_tool_results === 0) {
    const reason = plan.reason.replace(/^nothing to compact: /, "");
    return `No compaction needed: ${oneLine(reason, 400)}`;
  }
  const words = [
    `${count(plan.tokens_before)} → ${count(plan.tokens_after)} tokens (saves ${count(plan.tokens_saved)})`,
    `${plural(plan.messages_removed, "message")} summarised`,
    `${count(plan.kept_messages)} kept word for word`,
  ];
  if (plan.pinned_entry_ids.length > 0) words.push(`${count(plan.pinned_entry_ids.length)} pinned`);
  if (plan.pruned_tool_results > 0) words.push(`${plural(plan.pruned_tool_results, "tool result")} pruned`);
  if (plan.retention) words.push(`keeps ${Math.round(100 * plan.retention.score)} % of the repeated details`);
  if (plan.cost !== undefined) words.push(`about $${plan.cost.toFixed(2)}`);
  return words.join(" · ");
}

/** What a compaction did, in a line. */
export function afterwards(done: CompactionResult): string {
  const kept = done.retention ? ` · kept ${Math.round(100 * done.retention.score)} % of the repeated details` : "";
  return `Compacted ${plural(done.messages_removed, "message")}: ${count(done.tokens_before)} → ${count(done.tokens_after)} tokens${kept}`;
}

/** Entries as a text, one below the other. */
export function contextText(entries: readonly HistoryEntry[]): string {
  return entries.map((entry) => `${heading(entry)}\n\n${entryText(entry)}\n`).join("\n");
}

/** Originals in the same shape, so that a diff lines up. */
export function originalsText(originals: readonly Original[]): string {
  return originals.map(({ entry_id: id, message }) => `## ${id} · ${roleOf(message)}\n\n${wholeText(message)}\n`).join("\n");
}

/** What the context would be, as far as the preview tells. */
export function plannedText(context: readonly HistoryEntry[], plan: CompactionResult): string {
  const fates = fatesOf(context, plan);
  const stays = context.filter((_, at) => fates[at] !== "summarised");
  const gone = plural(plan.messages_removed, "message");
  const summary = plan.summary || `(a summary of ${gone})`;
  return plan.messages_removed === 0 ? contextText(context) : `## summary\n\n${plain(summary)}\n\n${contextText(stays)}`;
}

/** The whole text of an entry. */
export function entryText(entry: HistoryEntry): string {
  return isSummary(entry) ? plain(entry.compaction?.summary ?? "") : wholeText(entry.message);
}

function isSummary(entry: HistoryEntry): boolean {
  return entry.kind === "compaction";
}

function heading(entry: HistoryEntry): string {
  // No size in it: a diff of two contexts is of what they say.
  return isSummary(entry) ? "## summary" : `## ${entry.entry_id} · ${roleOf(entry.message)}`;
}

function rowOf(entry: HistoryEntry, fate: Fate): Row {
  const done = isSummary(entry) ? entry.compaction : null;
  return {
    id: entry.entry_id,
    role: done ? "summary" : roleOf(entry.message),
    line: done
      ? `${plural(done.messages_removed, "message")} summarised · ${count(done.tokens_before)} → ${count(done.tokens_after)} tokens`
      : lineOf(entry.message),
    tokens: entry.tokens ?? null,
    pinnedBy: entry.pinned ? "person" : entry.carried ? "compaction" : null,
    isPruned: entry.pruned_at !== undefined && entry.pruned_at !== null,
    opens: done?.compaction_id ?? null,
    fate,
    level: 1,
  };
}
