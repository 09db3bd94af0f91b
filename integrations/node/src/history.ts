// What an adapter gives to a mirror, and gets from it: a conversation as the framework holds it, and what the next
// request shall contain.

import { createHash } from "node:crypto";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** A block of a message, in the protocol's neutral form. */
export type Block = { type: string; [field: string]: unknown };

/** A message in the protocol's neutral form, without an id. */
export interface NeutralMessage {
  role: "system" | "user" | "assistant" | "tool";
  content: string | Block[];
  meta?: { author: string; synthetic: boolean };
  /** The provider's report on the request that this message answers. */
  usage?: object;
}

/** All messages of a conversation, oldest first. `parts[i]` is what the framework has for message `i`. */
export interface History<Part> {
  readonly parts: readonly Part[];
  /** Return a message in the neutral form. Called for new messages only. */
  encode(index: number): NeutralMessage;
}

/** What a model request contains in addition to its messages. */
export interface Setup {
  /** `provider/id`; undefined if it is not known. */
  model?: string | undefined;
  systemPrompt?: string | undefined;
  tools?: readonly ToolDefinition[];
}

export interface ToolDefinition {
  name: string;
  description?: string;
  input_schema?: unknown;
}

/** A message of the view that the history does not have in this form: a summary, or a changed message. */
export interface ShownMessage {
  role: string;
  content: string | Block[];
  /** The message of the history that it replaces; undefined if it replaces none. */
  index?: number | undefined;
}

/** What the next model request shall contain. */
export interface View {
  /** Indices of the history for messages that stay as they are. */
  items: readonly (number | ShownMessage)[];
  /** True if the items are the whole history, unchanged. */
  isWhole: boolean;
  /** The most output tokens that the request may ask for, if that is known. */
  maxOutputTokens?: number | undefined;
  /** The size of the request in tokens, as far as the daemon knows it. */
  tokens?: number | undefined;
  /** The size at which a compaction is due, in tokens. */
  threshold?: number | undefined;
  /** True if the conversation was compacted for this request. */
  isNew?: boolean;
}

/** Return how many items at the beginning are equal. Costs what is compared, until the first difference. */
export function commonLength(one: readonly unknown[], other: readonly unknown[]): number {
  const most = Math.min(one.length, other.length);
  for (let at = 0; at < most; at++) if (!isSame(one[at], other[at])) return at;
  return most;
}

/** Return whether two values have the same contents. The order of fields does not matter, and neither do fields that
 * are undefined. */
export function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    for (let at = 0; at < one.length; at++) if (!isSame(one[at], other[at])) return false;
    return true;
  }
  if (ArrayBuffer.isView(one) || ArrayBuffer.isView(other)) return sendable(one) === sendable(other);
  const first = one as Record<string, unknown>;
  const second = other as Record<string, unknown>;
  let count = 0;
  for (const name in first) {
    if (first[name] === undefined) continue;
    count += 1;
    if (!isSame(first[name], second[name])) return false;
  }
  for (const name in second) if (second[name] !== undefined) count -= 1;
  return count === 0;
}

/** Return a value as JSON. Bytes become base64. Half of a surrogate pair becomes U+FFFD: it cannot be stored. */
export function sendable(value: unknown): string {
  const text = JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each === "string") return each.isWellFormed() ? each : each.toWellFormed();
    if (typeof each === "bigint") return each.toString();
    if (each instanceof Uint8Array) return Buffer.from(each).toString("base64");
    return each;
  });
  return text ?? "null";
}

/** Return the id of a message: a digest of it and of all that came before it. So the same history has the same ids in
 * every process, and two histories have the same ids up to their first difference. */
export function messageId(before: string, body: string): string {
  return createHash("sha256").update(before).update("\0").update(body).digest("hex").slice(0, 24);
}
