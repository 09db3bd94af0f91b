// What a person reads: the gauge, the answers of /compactd. Nothing of a conversation reaches a terminal as a command
// to it.

import type { Compaction } from "./mirror.ts";

export interface Hit {
  entry_id: string;
  role: string;
  snippet: string;
  in_context?: boolean;
}

export interface State {
  model: string | null;
  message_count: number;
  token_usage: { current_context_tokens: number | null; context_window: number | null };
  compaction: { count: number; tokens_saved: number };
  reductions?: Reduced & { observed: Reduced };
}

/** Tool outputs, and their tokens before and after a reduction. */
interface Reduced {
  count: number;
  tokens_before: number;
  tokens_after: number;
}

export interface Usage {
  tokens: number | null;
  contextWindow: number;
  percent: number | null;
}

/** `ctx 41 % · 82k/200k · kept 92 %`; undefined where nothing is known. */
export function gauge(usage: Usage | undefined, kept: number | undefined): string | undefined {
  if (!usage?.contextWindow) return undefined;
  const parts =
    usage.tokens === null
      ? [`ctx – · ${short(usage.contextWindow)}`]
      : [`ctx ${percent(usage.tokens / usage.contextWindow)}`, `${short(usage.tokens)}/${short(usage.contextWindow)}`];
  if (kept !== undefined) parts.push(`kept ${percent(kept)}`);
  return parts.join(" · ");
}

/** After a compaction. */
export function compacted(done: Compaction): string {
  const kept = done.retention ? ` · kept ${percent(done.retention.score)} of the repeated details` : "";
  return `compacted ${count(done.messages_removed)} · ${sizes(done)}${kept} · /compactd undo takes it back`;
}

/** What a compaction now would do. */
export function preview(done: Compaction): string {
  if (!done.compacted && !done.messages_removed) return done.reason || "there is nothing to compact";
  const kept = done.retention ? `, ${percent(done.retention.score)} of the repeated details would be kept` : "";
  return `a compaction now would remove ${count(done.messages_removed)}: ${sizes(done)}${kept}`;
}

/** Where the session stands; the tokens are pi's own count, where it has one. */
export function state(given: State, usage: Usage | undefined): string {
  const { token_usage: ours, compaction } = given;
  const lines = [`model ${given.model ?? "not known"} · ${count(given.message_count)} in the context`];
  const used = usage?.tokens ?? ours.current_context_tokens;
  const window = usage?.contextWindow ?? ours.context_window;
  const by = usage?.tokens == null ? "compactd's estimate" : "pi's count";
  if (used !== null) lines.push(`used ${exact(used)}${window ? ` of ${exact(window)}` : ""} tokens, ${by}`);
  const times = compaction.count === 1 ? "1 compaction" : `${compaction.count} compactions`;
  lines.push(`${times}, ${exact(compaction.tokens_saved)} tokens saved`);
  const { reductions } = given;
  if (reductions?.count) lines.push(`${outputs(reductions)} reduced: ${savings(reductions)}`);
  if (reductions?.observed.count) {
    const { observed } = reductions;
    lines.push(`${outputs(observed)} would be reduced: ${savings(observed)}`);
  }
  return lines.join("\n");
}

const outputs = ({ count: all }: Reduced) => (all === 1 ? "1 output" : `${exact(all)} outputs`);
const savings = (reduced: Reduced) => `${exact(reduced.tokens_before)} → ${exact(reduced.tokens_after)} tokens`;

export function hits(found: Hit[], words: string): string {
  if (!found.length) return `nothing says "${plain(words)}"`;
  return found
    .map((hit) => `${hit.entry_id} ${hit.role}${hit.in_context === false ? ", compacted" : ""}: ${plain(hit.snippet)}`)
    .join("\n");
}

// As the daemon's own list, core/unseen.py.
const UNSEEN =
  /[\s\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]+/gu;

/** Text of a conversation as one line without control characters, turned text or letters that nobody sees. */
export function plain(text: string): string {
  return text.replace(UNSEEN, " ").trim();
}

function sizes(done: Compaction): string {
  return `${short(done.tokens_before)} → ${short(done.tokens_after)} tokens`;
}

function count(messages: number): string {
  return messages === 1 ? "1 message" : `${exact(messages)} messages`;
}

function percent(share: number): string {
  return `${Math.round(100 * share)} %`;
}

function exact(value: number): string {
  return value.toLocaleString("en-US");
}

function short(tokens: number): string {
  if (tokens < 1_000) return `${tokens}`;
  if (tokens < 999_500) return `${Math.round(tokens / 1_000)}k`;
  return `${(tokens / 1_000_000).toFixed(1)}M`;
}
