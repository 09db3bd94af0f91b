/** What a message of the wire says, as text. The wire's messages are read with care: any client wrote them. */

import { oneLine, plain } from "./plain.ts";
import type { Json } from "./protocol.ts";

/** One block of a message, as text. */
export interface Part {
  readonly kind: "text" | "thinking" | "call" | "result" | "other";
  readonly text: string;
  /** The tool of a call or result. */
  readonly name: string | null;
  readonly isError: boolean;
}

/** Who a message is of; empty where it does not say. */
export function roleOf(message: Json | undefined): string {
  return text(member(message, "role"));
}

/** The blocks of a message in their order. */
export function partsOf(message: Json | undefined): Part[] {
  const content = member(message, "content");
  if (typeof content === "string") return [part("text", content)];
  return Array.isArray(content) ? content.map(partOf) : [];
}

/** A message whole, as text with a mark before calls and results. */
export function wholeText(message: Json | undefined): string {
  return partsOf(message)
    .map((each) => {
      switch (each.kind) {
        case "call":
          return `→ ${each.name ?? "tool"} ${plain(each.text)}`;
        case "result":
          return `← ${each.name ?? "result"}${each.isError ? " (failed)" : ""}\n${plain(each.text)}`;
        case "thinking":
          return `(thinking) ${plain(each.text)}`;
        default:
          return plain(each.text);
      }
    })
    .join("\n\n");
}

/** A message in one line. */
export function lineOf(message: Json | undefined): string {
  const parts = partsOf(message);
  const first = parts.find((each) => each.kind === "text" && each.text.trim() !== "") ?? parts[0];
  if (first === undefined) return "";
  const more = parts.filter((each) => each.kind === "call" && each !== first).map((each) => each.name ?? "tool");
  const line =
    first.kind === "call"
      ? callLine(first)
      : first.kind === "result"
        ? `← ${first.isError ? "failed: " : ""}${first.text}`
        : first.text;
  return oneLine(more.length > 0 ? `${oneLine(line, 100)} → ${more.join(", ")}` : line);
}

/** A call in a few words: what it is about, where its arguments have a usual name for that. */
export function callLine(call: Part): string {
  const about = /^\s*\{/.test(call.text) ? aboutOf(call.text) : null;
  return `→ ${call.name ?? "tool"} ${about ?? call.text}`;
}

function aboutOf(text: string): string | null {
  let given: Json;
  try {
    given = JSON.parse(text) as Json;
  } catch {
    return null;
  }
  for (const name of ["path", "file_path", "command", "pattern", "query", "url"]) {
    const value = member(given, name);
    if (typeof value === "string") return value;
  }
  return null;
}

function partOf(block: Json | undefined): Part {
  const type = text(member(block, "type"));
  const name = text(member(block, "name")) || null;
  switch (type) {
    case "text":
      return part("text", text(member(block, "text")));
    case "thinking":
      return part("thinking", text(member(block, "thinking")) || text(member(block, "text")));
    case "tool_call": {
      const given = member(block, "arguments");
      return { kind: "call", name, isError: false, text: typeof given === "string" ? given : JSON.stringify(given ?? {}) };
    }
    case "tool_result":
      return { kind: "result", name, isError: member(block, "is_error") === true, text: resultText(member(block, "content")) };
    default:
      return part("other", `[${type || "unknown"}]`);
  }
}

function resultText(content: Json | undefined): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map((block) => partOf(block).text).join("\n") : "";
}

function part(kind: Part["kind"], said: string): Part {
  return { kind, text: said, name: null, isError: false };
}

function text(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

function member(value: Json | undefined, name: string): Json | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value[name] : undefined;
}
