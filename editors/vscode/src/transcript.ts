/** A session's history as the lines of a conversation. */

import type { Line } from "./messages.ts";
import { brief, count, plain, plural } from "./plain.ts";
import type { CompactionResult, HistoryEntry } from "./protocol.ts";
import { callLine, partsOf, roleOf } from "./said.ts";

export const NO_LONGER = "no longer in force";

/** The lines of some entries, oldest first. `authors`: by entry, the other client that sent it. */
export function linesOf(entries: readonly HistoryEntry[], authors: ReadonlyMap<string, string> = new Map()): Line[] {
  return entries.flatMap((entry) => {
    if (entry.kind === "compaction" && entry.compaction) return [ruleOf(entry.entry_id, entry.compaction, entry.in_context ? "" : NO_LONGER)];
    if (entry.kind !== "message") return [];
    const author = authors.get(entry.entry_id);
    const lines = messageLines(entry.entry_id, entry);
    return author === undefined ? lines : lines.map((line) => (line.role === "user" ? { ...line, who: `You (${author})` } : line));
  });
}

/** A compaction as a quiet rule across the conversation. */
export function ruleOf(id: string, done: CompactionResult, mark = ""): Line {
  const kept = done.retention ? ` · kept ${Math.round(100 * done.retention.score)} % of the repeated details` : "";
  return {
    id,
    role: "rule",
    ...(mark === "" ? {} : { mark }),
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
