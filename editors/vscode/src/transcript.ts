/** A session's history as the lines of a conversation. */

import type { Line } from "./messages.ts";
import { brief, count, plain, plural } from "./plain.ts";
import type { CompactionResult, HistoryEntry } from "./protocol.ts";
import { callLine, partsOf, roleOf } from "./said.ts";

/** The lines of some entries, oldest first. */
export function linesOf(entries: readonly HistoryEntry[]): Line[] {
  return entries.flatMap((entry) => {
    if (entry.kind === "compaction" && entry.compaction) return [ruleOf(entry.entry_id, entry.compaction)];
    return entry.kind === "message" ? messageLines(entry.entry_id, entry) : [];
  });
}

/** A compaction as a quiet rule across the conversation. */
export function ruleOf(id: string, done: CompactionResult): Line {
  const kept = done.retention ? ` · kept ${Math.round(100 * done.retention.score)} % of the repeated details` : "";
  return {
    id,
    role: "rule",
    text: `compacted ${plural(done.messages_removed, "message")} · ${brief(done.tokens_before)} → ${brief(done.tokens_after)}${kept}`,
  };
}

function messageLines(id: string, entry: HistoryEntry): Line[] {
  const role = roleOf(entry.message);
  const lines: Line[] = [];
  partsOf(entry.message).forEach((part, at) => {
    const key = `${id}.${at}`;
    const text = plain(part.text);
    if (part.kind === "call") lines.push({ id: key, role: "tool", text: shortened(plain(callLine(part))) });
    else if (part.kind === "result") lines.push({ id: key, role: "tool", text: `← ${part.isError ? "failed: " : ""}${shortened(text)}` });
    else if (text.trim() !== "") {
      lines.push({ id: key, role: part.kind === "thinking" ? "thinking" : role === "assistant" ? "assistant" : role === "user" ? "user" : "note", text });
    }
  });
  return lines;
}

function shortened(text: string): string {
  return text.length <= 600 ? text : `${text.slice(0, 600)}… (${count(text.length)} characters)`;
}
