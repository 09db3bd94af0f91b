// OpenClaw's messages as messages of the protocol.

import type { Block, History, NeutralMessage } from "../../node/src/history.js";
import type { Message } from "./host.js";

/** A message with fields that are not known beforehand. */
export type Fields = Message & { readonly [field: string]: unknown };

/** Marks an opaque block as OpenClaw's. */
const PROVIDER = "openclaw";
/** What does not count as the user's words. */
const NOBODYS = { author: "unknown", synthetic: true };
/** The provenance of a message that a person sent. Others come from agents, tools and OpenClaw itself. */
const PERSONS = "external_user";
/** What OpenClaw puts before a history whose beginning it left out, if that is now an answer. */
const PLACEHOLDER = "(session bootstrap)";

/** Return the history for a mirror. */
export function historyOf(messages: readonly Message[]): History<Message> {
  return { parts: messages, encode: (index) => encode((messages[index] ?? {}) as Fields) };
}

/** Return the id of a call as it is on every way. A transcript also has the id of the item, after a bar. From messages
 * that it gives to an engine, OpenClaw removes it, and characters that some providers refuse. */
export function callIdOf(id: unknown): string {
  return String(id ?? "").replace(/\|.*|[^a-zA-Z0-9]/gs, "") || "missing";
}

/** Return a message in the neutral form. What is not known is kept unchanged, and does not count as written by the
 * user. */
function encode(message: Fields): NeutralMessage {
  switch (message.role) {
    case "user":
      return { role: "user", content: contentOf(message.content), ...(isPersons(message) ? {} : { meta: NOBODYS }) };
    case "assistant": {
      const usage = usageOf(message.usage);
      return { role: "assistant", content: contentOf(message.content), ...(usage ? { usage } : {}) };
    }
    case "toolResult":
      return { role: "tool", content: [resultOf(message)] };
    case "bashExecution":
      return { role: "user", content: `$ ${String(message.command)}\n${String(message.output)}`, meta: NOBODYS };
    case "branchSummary":
    case "compactionSummary":
      return { role: "user", content: String(message.summary ?? ""), meta: NOBODYS };
    default: {
      const { content } = message;
      return { role: "user", content: content === undefined ? [opaque(message)] : contentOf(content), meta: NOBODYS };
    }
  }
}

export function isPlaceholder(message: Message): boolean {
  return message.role === "user" && (message as Fields).content === PLACEHOLDER;
}

/** Return whether a person wrote a message of the role user. */
function isPersons(message: Fields): boolean {
  const { kind } = (message.provenance ?? {}) as { kind?: unknown };
  return !isPlaceholder(message) && message.runtimeContextCarrier !== true && (kind === undefined || kind === PERSONS);
}

function contentOf(content: unknown): string | Block[] {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(blockOf);
  return content === undefined || content === null ? [] : [opaque(content)];
}

function blockOf(given: unknown): Block {
  const block = (given ?? {}) as { readonly [field: string]: unknown };
  switch (block.type) {
    case "text":
      return typeof block.text === "string" ? { type: "text", text: block.text } : opaque(given);
    case "thinking":
      // Redacted thoughts, and signatures, are sent back, so they take room.
      if (typeof block.thinking !== "string" || block.redacted === true) return opaque(given);
      return {
        type: "thinking",
        text: block.thinking,
        ...(typeof block.thinkingSignature === "string" ? { signature: block.thinkingSignature } : {}),
      };
    case "toolCall":
      return { type: "tool_call", call_id: callIdOf(block.id), name: String(block.name), arguments: block.arguments ?? {} };
    case "image":
      if (typeof block.data !== "string") return opaque(given);
      return { type: "image", media_type: String(block.mimeType ?? "image/png"), data: block.data };
    default:
      return opaque(given);
  }
}

function resultOf(message: Fields): Block {
  const content = contentOf(message.content);
  const [only] = content;
  const text = content.length === 1 && typeof only === "object" && only.type === "text" ? String(only.text) : undefined;
  return {
    type: "tool_result",
    call_id: callIdOf(message.toolCallId),
    name: String(message.toolName ?? "tool"),
    content: text ?? content,
    ...(message.isError === true ? { is_error: true } : {}),
  };
}

function opaque(raw: unknown): Block {
  return { type: "opaque", provider: PROVIDER, raw };
}

/** Return a report on a request; undefined if the provider gave none. What was read from the cache, and written to it,
 * is not part of `input`. */
function usageOf(given: unknown): object | undefined {
  const { input = 0, output = 0, cacheRead = 0, cacheWrite = 0 } = (given ?? {}) as { [name: string]: number };
  return input + cacheRead + cacheWrite > 0 ? { input, output, cacheRead, cacheWrite } : undefined;
}
