// Items of the OpenAI Agents SDK as messages of the protocol.
//
// Consecutive items that a model wrote (reasoning, text, calls) are one assistant message. Every other item is a message
// of its own.

import type { AgentInputItem } from "@openai/agents";
import type { Block, History, NeutralMessage } from "../history.js";

export type Item = AgentInputItem;
type Fields = Record<string, unknown>;

/** Marks an opaque block as the Responses API's. */
const PROVIDER = "openai_responses";
const NOT_ARGUMENTS = new Set(["type", "id", "callId", "status", "name", "namespace", "caller", "providerData"]);
const NOT_OUTPUT = new Set(["type", "id", "callId", "status", "name", "namespace", "caller", "providerData"]);

/** Return the items of a conversation, grouped into messages. */
export function grouped(items: readonly Item[]): Item[][] {
  const messages: Item[][] = [];
  let isOpen = false;
  for (const item of items) {
    const isSaid = side(item as Fields) === "assistant";
    const last = messages.at(-1);
    if (isSaid && isOpen && last) last.push(item);
    else messages.push([item]);
    isOpen = isSaid;
  }
  return messages;
}

/** Return the history for a mirror. `usageOf` returns the provider's report on the request that a message answers. */
export function historyOf(
  messages: readonly Item[][],
  usageOf: (index: number) => object | undefined = () => undefined,
): History<Item[]> {
  return {
    parts: messages,
    encode(index) {
      const neutral = encode((messages[index] ?? []) as Fields[]);
      const usage = neutral.role === "assistant" ? usageOf(index) : undefined;
      return usage ? { ...neutral, usage } : neutral;
    },
  };
}

/** Return whose message an item is in. */
function side(item: Fields): NeutralMessage["role"] | "unknown" {
  const { type, role } = item;
  if (type === "message" || (type === undefined && role !== undefined)) {
    return role === "user" || role === "assistant" || role === "system" ? role : "unknown";
  }
  if (typeof type !== "string" || type === "unknown") return "unknown";
  // An output without an id of its call must not be separated from it.
  return resultId(item) === undefined ? "assistant" : "tool";
}

/** Return the id of the call that an item is the result of. */
function resultId(item: Fields): string | undefined {
  return /_(result|output)$/.test(String(item.type)) ? text(item.callId) : undefined;
}

/** Return the id that the result of a call names; undefined for an item that waits for no result. */
export function callIdOf(item: Fields): string | undefined {
  if (/_(result|output)$/.test(String(item.type))) return undefined;
  if (item.type === "function_call") return text(item.callId) ?? text(item.id) ?? "missing";
  return text(item.callId);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value ? value : undefined;
}

/** Return whether items continue a conversation that the server holds: a result is before any call. */
export function isContinuation(items: readonly Item[]): boolean {
  for (const item of items as readonly Fields[]) {
    if (side(item) === "tool") return true;
    if (callIdOf(item) !== undefined) return false;
  }
  return false;
}

/** Return the items of one message in the neutral form. What is not known is kept unchanged, and does not count as
 * written by the user. */
function encode(items: readonly Fields[]): NeutralMessage {
  const first = items[0] ?? {};
  const role = side(first);
  if (role === "assistant") return { role, content: items.flatMap(saidBy) };
  if (role === "tool") return { role, content: [result(first)] };
  if (role !== "unknown") return { role, content: contentOf(first.content) };
  const content = first.content === undefined ? [opaque(first)] : contentOf(first.content);
  return { role: "user", content, meta: { author: "unknown", synthetic: true } };
}

function contentOf(content: unknown): string | Block[] {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(partOf);
  return content === undefined || content === null ? [] : [opaque(content)];
}

function partOf(given: unknown): Block {
  if (typeof given === "string") return { type: "text", text: given };
  const part = (given ?? {}) as Fields;
  switch (part.type) {
    case "input_text":
    case "output_text":
    case "text":
      return typeof part.text === "string" ? { type: "text", text: part.text } : opaque(part);
    case "refusal":
      return typeof part.refusal === "string" ? { type: "text", text: part.refusal } : opaque(part);
    case "input_image":
    case "image":
      return imageOf(part.image) ?? opaque(part);
    case "computer_screenshot":
      return imageOf(part.data) ?? opaque(part);
    case "input_file":
    case "file":
      return documentOf(part) ?? opaque(part);
    default:
      return opaque(part);
  }
}

function imageOf(image: unknown): Block | undefined {
  const inline = inlineOf(image, "image/png");
  if (inline) return { type: "image", media_type: inline.mediaType, data: inline.data };
  const url = urlOf(image);
  return url === undefined ? undefined : { type: "image", url };
}

function documentOf(part: Fields): Block | undefined {
  const { file } = part;
  const name = text(part.filename) ?? text((file as Fields | undefined)?.filename);
  const title = name === undefined ? {} : { title: name };
  const inline = inlineOf(file, "application/pdf");
  if (inline) return { type: "document", media_type: inline.mediaType, data: inline.data, ...title };
  const url = urlOf(file);
  return url === undefined ? undefined : { type: "document", url, ...title };
}

/** Return the data of an image or file that is in the item itself. */
function inlineOf(value: unknown, usual: string): { mediaType: string; data: string } | undefined {
  const fields = (typeof value === "object" && value !== null ? value : {}) as Fields;
  const mediaType = text(fields.mediaType) ?? usual;
  if (fields.data instanceof Uint8Array) return { mediaType, data: Buffer.from(fields.data).toString("base64") };
  const given = typeof value === "string" ? value : fields.data;
  if (typeof given !== "string") return undefined;
  const [, media, data] = /^data:([^;,]*)(?:;[^;,]*)*;base64,(.*)$/s.exec(given) ?? [];
  if (data !== undefined) return { mediaType: media || usual, data };
  return typeof value === "string" ? undefined : { mediaType, data: given };
}

function urlOf(value: unknown): string | undefined {
  if (typeof value === "string") return /^[a-z][a-z0-9+.-]*:/i.test(value) ? value : undefined;
  return text(((value ?? {}) as Fields).url);
}

/** Return the blocks of an item that the model wrote. */
export function saidBy(item: Fields): Block[] {
  const callId = callIdOf(item);
  if (callId !== undefined) {
    const rest = Object.fromEntries(Object.entries(item).filter(([name]) => !NOT_ARGUMENTS.has(name)));
    const name = text(item.name) ?? String(item.type);
    return [{ type: "tool_call", call_id: callId, name, arguments: item.arguments ?? item.input ?? rest }];
  }
  if (item.type === "reasoning") return reasoning(item);
  if (item.type === "message" || item.type === undefined) {
    const content = contentOf(item.content);
    return typeof content === "string" ? [{ type: "text", text: content }] : content;
  }
  return [opaque(item)];
}

function reasoning(item: Fields): Block[] {
  const texts = [item.content, item.rawContent]
    .flatMap((parts) => (Array.isArray(parts) ? (parts as Fields[]) : []))
    .map((part) => part.text)
    .filter((each) => typeof each === "string" && each !== "");
  const blocks: Block[] = texts.length ? [{ type: "thinking", text: texts.join("\n") }] : [];
  // Encrypted thoughts are sent back, so they take room.
  if (item.providerData && Object.keys(item.providerData as object).length) blocks.push(opaque(item));
  return blocks;
}

function result(item: Fields): Block {
  const { output } = item;
  let content: string | Block[] | undefined = typeof output === "string" ? output : undefined;
  if (content === undefined) {
    const parts = Array.isArray(output) ? output : output === undefined ? [] : [output];
    const blocks = parts.map(partOf);
    const [only] = blocks;
    if (blocks.length === 1 && only?.type === "text") content = only.text as string;
    else if (blocks.length && blocks.every((block) => block.type !== "opaque")) content = blocks;
  }
  if (content === undefined) {
    const rest = Object.fromEntries(Object.entries(item).filter(([name]) => !NOT_OUTPUT.has(name)));
    content = JSON.stringify(rest.output ?? rest);
  }
  const isError = item.status === "failed" || item.status === "incomplete";
  return {
    type: "tool_result",
    call_id: resultId(item) ?? "",
    content,
    ...(text(item.name) ? { name: item.name } : {}),
    ...(isError ? { is_error: true } : {}),
  };
}

function opaque(raw: unknown): Block {
  return { type: "opaque", provider: PROVIDER, raw };
}
