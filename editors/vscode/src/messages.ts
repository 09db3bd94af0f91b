/** What the extension and its pages say to each other. Whatever does not look so is dropped, on both sides. */

import { addressOf } from "./address.ts";
import type { Row } from "./rows.ts";
import type { WorkRow } from "./work.ts";

/** The lines above the context's list. */
export interface ContextHead {
  readonly title: string;
  readonly gauge: string;
  readonly facts: readonly string[];
  readonly readOnly: boolean;
  readonly canChange: boolean;
  /** A compaction that runs, 0 to 1; null where none does. */
  readonly fraction: number | null;
}

/** A compaction that could be done. */
export interface Plan {
  readonly words: string;
  readonly focus: string;
  /** Tokens of the verbatim tail. */
  readonly keep: number;
  readonly canCompact: boolean;
}

export type ToContext =
  | { readonly type: "head"; readonly head: ContextHead }
  | { readonly type: "rows"; readonly rows: readonly Row[]; readonly plan: Plan | null }
  | { readonly type: "more"; readonly rows: readonly Row[] }
  | { readonly type: "behind"; readonly id: string; readonly rows: readonly Row[] }
  | { readonly type: "entry"; readonly id: string; readonly title: string; readonly text: string; readonly isPinned: boolean }
  | { readonly type: "reveal"; readonly id: string }
  | { readonly type: "work"; readonly brief: string; readonly rows: readonly WorkRow[] }
  | { readonly type: "said"; readonly text: string };

export type FromContext =
  | { readonly type: "ready" }
  | { readonly type: "drawn" }
  | { readonly type: "open"; readonly id: string }
  | { readonly type: "expand"; readonly id: string }
  | { readonly type: "plan"; readonly focus: string; readonly keep: number | null }
  | { readonly type: "compact"; readonly focus: string; readonly keep: number | null }
  | { readonly type: "pin"; readonly id: string; readonly pinned: boolean }
  | { readonly type: "do"; readonly what: ContextDeed };

export const CONTEXT_DEEDS = ["unplan", "diff", "undo", "redo", "search", "cancel", "chat"] as const;
export type ContextDeed = (typeof CONTEXT_DEEDS)[number];

/** One thing that was said in a chat. */
export interface Line {
  readonly id: string;
  readonly role: "user" | "assistant" | "thinking" | "tool" | "note" | "error" | "rule";
  readonly text: string;
  /** Who says it, where that is not plain from the role. */
  readonly who?: string;
  /** Small words behind the line of a compaction. */
  readonly mark?: string;
}

/** A tool that the person must allow. */
export interface Asked {
  readonly call: string;
  readonly title: string;
  readonly detail: string;
  /** What a yes and a no are called. */
  readonly yes: string;
  readonly no: string;
  /** "Allow for this session" is offered as well. */
  readonly canRemember: boolean;
}

export interface ChatHead {
  readonly title: string;
  readonly model: string;
  readonly gauge: string;
  readonly running: boolean;
  readonly canWrite: boolean;
  readonly why: string;
}

export type ToChat =
  | { readonly type: "head"; readonly head: ChatHead }
  | { readonly type: "lines"; readonly lines: readonly Line[]; readonly earlier: number }
  /** A line for the end; one of the same id that is there goes away. */
  | { readonly type: "line"; readonly line: Line }
  | { readonly type: "gone"; readonly id: string }
  | { readonly type: "mark"; readonly id: string; readonly mark: string }
  | { readonly type: "delta"; readonly thinking: string; readonly text: string }
  /** The end of what streams in: the whole of it takes its place, or it stays as it is, or goes. */
  | { readonly type: "end"; readonly line: Line | null; readonly stays: boolean }
  | { readonly type: "ask"; readonly asked: Asked }
  | { readonly type: "asked"; readonly call: string; readonly answer: string };

export type FromChat =
  | { readonly type: "ready" }
  | { readonly type: "prompt"; readonly text: string }
  | { readonly type: "answer"; readonly call: string; readonly answer: Answer }
  | { readonly type: "copy"; readonly text: string }
  | { readonly type: "link"; readonly href: string }
  | { readonly type: "do"; readonly what: ChatDeed };

export const CHAT_DEEDS = ["stop", "undo", "context", "compact", "earlier"] as const;
export type ChatDeed = (typeof CHAT_DEEDS)[number];

export const ANSWERS = ["once", "session", "no"] as const;
export type Answer = (typeof ANSWERS)[number];

const MOST_CHARS = 1_000_000;

/** A message of the context's page, or null where it is none. */
export function fromContext(value: unknown): FromContext | null {
  const given = record(value);
  if (given === null) return null;
  const { type, id, focus, keep, pinned, what } = given;
  switch (type) {
    case "ready":
    case "drawn":
      return { type };
    case "open":
    case "expand":
      return isText(id) ? { type, id } : null;
    case "plan":
    case "compact":
      return isText(focus) && isKeep(keep) ? { type, focus, keep } : null;
    case "pin":
      return isText(id) && typeof pinned === "boolean" ? { type, id, pinned } : null;
    case "do":
      return isOneOf(CONTEXT_DEEDS, what) ? { type, what } : null;
    default:
      return null;
  }
}

/** A message of the chat's page, or null where it is none. */
export function fromChat(value: unknown): FromChat | null {
  const given = record(value);
  if (given === null) return null;
  const { type, text, href, call, answer, what } = given;
  switch (type) {
    case "ready":
      return { type };
    case "prompt":
      return isText(text) && text.trim() !== "" ? { type, text } : null;
    case "copy":
      return isText(text) ? { type, text } : null;
    case "link":
      return isText(href) && addressOf(href) === href ? { type, href } : null;
    case "answer":
      return isText(call) && isOneOf(ANSWERS, answer) ? { type, call, answer } : null;
    case "do":
      return isOneOf(CHAT_DEEDS, what) ? { type, what } : null;
    default:
      return null;
  }
}

/** The fields that a message of each type must have, and what `typeof` says of them. */
export type Shapes<T extends string> = { readonly [type in T]: { readonly [field: string]: "string" | "number" | "boolean" | "object" } };

export const CONTEXT_SHAPES: Shapes<ToContext["type"]> = {
  head: { head: "object" },
  rows: { rows: "object", plan: "object" },
  more: { rows: "object" },
  behind: { id: "string", rows: "object" },
  entry: { id: "string", title: "string", text: "string", isPinned: "boolean" },
  reveal: { id: "string" },
  work: { brief: "string", rows: "object" },
  said: { text: "string" },
};

export const CHAT_SHAPES: Shapes<ToChat["type"]> = {
  head: { head: "object" },
  lines: { lines: "object", earlier: "number" },
  line: { line: "object" },
  gone: { id: "string" },
  mark: { id: "string", mark: "string" },
  delta: { thinking: "string", text: "string" },
  end: { line: "object", stays: "boolean" },
  ask: { asked: "object" },
  asked: { call: "string", answer: "string" },
};

/** For the pages: whether the editor can have said this. */
export function isOurs<T extends string>(value: unknown, shapes: Shapes<T>): boolean {
  const given = record(value);
  const type = given?.["type"];
  if (given === null || typeof type !== "string" || !Object.hasOwn(shapes, type)) return false;
  return Object.entries(shapes[type as T]).every(([field, kind]) => typeof given[field] === kind);
}

function record(value: unknown): Record<string, unknown> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= MOST_CHARS;
}

function isKeep(value: unknown): value is number | null {
  return value === null || (typeof value === "number" && Number.isInteger(value) && value > 0 && value < 2 ** 53);
}

function isOneOf<T extends string>(words: readonly T[], value: unknown): value is T {
  return words.some((word) => word === value);
}
