// Messages of a provider's prompt as messages of the protocol.
//
// The SDK converts what an application gives into the prompt of a model request, anew for each request. This reads the
// prompts of AI SDK 7 (specification v4) and 6 (v3), which differ in how a file's data is given.

import type { Block, History, NeutralMessage } from "../history.js";

export type Fields = Record<string, unknown>;
/** A message of a prompt, as the provider gets it. Nobody may change it. */
export type Message = { readonly role: string; readonly content: unknown; readonly providerOptions?: unknown };

/** Marks an opaque block as one that the provider of the SDK understands. */
const PROVIDER = "ai-sdk";
const ROLES = new Set(["system", "user", "assistant", "tool"]);

/** Return the instructions, and the conversation after them. */
export function divided(prompt: readonly Message[]): Record<"instructions" | "messages", readonly Message[]> {
  const found = prompt.findIndex((message) => message.role !== "system");
  const start = found < 0 ? prompt.length : found;
  return { instructions: prompt.slice(0, start), messages: prompt.slice(start) };
}

/** Return a message without the options for the provider, as it is compared: frameworks put times into them, and the mark
 * for the cache moves from message to message. */
export function bare({ role, content }: Message): Message {
  if (!Array.isArray(content)) return { role, content };
  return { role, content: (content as Fields[]).map(({ providerOptions: _, ...rest }) => rest) };
}

/** Return the history for a mirror. `parts`: the messages as `bare` returns them; `usageOf` returns the provider's report
 * on the request that a message answers. */
export function historyOf(
  messages: readonly Message[],
  parts: readonly Message[],
  usageOf: (index: number) => object | undefined,
): History<Message> {
  return {
    parts,
    encode(index) {
      const neutral = encode(messages[index] as Message);
      const usage = neutral.role === "assistant" ? usageOf(index) : undefined;
      return usage ? { ...neutral, usage } : neutral;
    },
  };
}

/** Return whether a prompt is only what is new in a conversation that the server holds. */
export function isContinuation(messages: readonly Message[], providerOptions: unknown): boolean {
  for (const options of Object.values((providerOptions ?? {}) as Record<string, Fields | undefined>)) {
    if (options?.previousResponseId || options?.conversation) return true;
  }
  for (const message of messages) {
    if (message.role === "tool") return true;
    if (partsOf(message).some((part) => part.type === "tool-call")) return false;
  }
  return false;
}

/** Return the parts of a message. */
export function partsOf({ content }: Message): readonly Fields[] {
  return Array.isArray(content) ? (content as Fields[]) : [{ type: "text", text: content }];
}

/** Return a message in the neutral form. What is not known is kept unchanged, and does not count as written by the
 * user. */
function encode(message: Message): NeutralMessage {
  const { role, content } = message;
  const own = typeof content === "string" ? content : partsOf(message).flatMap((part) => blocksOf(part, role));
  // The protocol's tool messages have results only. What else is in one, such as an approval, was not said by the user.
  const isKnown = ROLES.has(role) && (role !== "tool" || partsOf(message).every((part) => part.type === "tool-result"));
  if (isKnown) return { role: role as NeutralMessage["role"], content: own };
  return { role: "user", content: own, meta: { author: "unknown", synthetic: true } };
}

/** Return the blocks of one part of a message. */
export function blocksOf(part: Fields, role: string): Block[] {
  switch (part.type) {
    case "text":
      // The SDK drops an empty text from some messages.
      return typeof part.text !== "string" ? [opaque(part)] : part.text ? [{ type: "text", text: part.text }] : [];
    case "reasoning":
      return reasoning(part);
    case "file":
    case "reasoning-file":
      return [fileOf(part)];
    case "tool-call":
      if (part.providerExecuted) return [opaque([part.toolCallId, part.toolName, part.input])];
      return [{ type: "tool_call", call_id: part.toolCallId, name: part.toolName, arguments: part.input ?? {} }];
    case "tool-result":
      // The provider ran the tool itself, and what it found is part of the answer.
      if (role === "assistant") return [opaque([part.toolCallId, part.toolName, (part.output as Fields)?.value])];
      return [resultOf(part)];
    default:
      return [opaque(part)];
  }
}

/** Encrypted thoughts and signatures are sent back. Encrypted thoughts take room. */
function reasoning(part: Fields): Block[] {
  const options = Object.values((part.providerOptions ?? {}) as Record<string, Fields | undefined>);
  const first = (...names: string[]) =>
    options.flatMap((each) => names.map((name) => each?.[name])).find((each) => typeof each === "string" && each);
  const signature = first("signature", "thoughtSignature");
  const encrypted = first("reasoningEncryptedContent", "redactedData");
  return [
    ...(part.text || signature ? [{ type: "thinking", text: part.text, ...(signature ? { signature } : {}) }] : []),
    ...(encrypted ? [opaque({ type: "reasoning", encrypted_content: encrypted })] : []),
  ];
}

function fileOf(part: Fields): Block {
  const { data: given, mediaType, filename } = part;
  const media_type = typeof mediaType === "string" ? mediaType : "application/octet-stream";
  const isImage = media_type.split("/")[0] === "image";
  const title = typeof filename === "string" && !isImage ? { title: filename } : {};
  const own = { type: isImage ? "image" : "document", media_type, ...title };
  const { type, ...rest } = (isTagged(given) ? given : { type: "data", data: given }) as Fields;
  if (type === "text") return { ...own, text: rest.text };
  const data = type === "url" ? rest.url : rest.data;
  if (data instanceof URL) return { ...own, url: data.href };
  if (data instanceof Uint8Array) return { ...own, data: Buffer.from(data).toString("base64") };
  if (typeof data !== "string") return opaque(part);
  return /^[a-z][a-z0-9+.-]*:/i.test(data) ? { ...own, url: data } : { ...own, data };
}

function isTagged(data: unknown): boolean {
  return typeof data === "object" && data !== null && !(data instanceof URL) && !(data instanceof Uint8Array);
}

function resultOf(part: Fields): Block {
  const output = (part.output ?? {}) as Fields;
  const isError = String(output.type).startsWith("error") || output.type === "execution-denied";
  return {
    type: "tool_result",
    call_id: part.toolCallId,
    content: outputOf(output),
    ...(typeof part.toolName === "string" ? { name: part.toolName } : {}),
    ...(isError ? { is_error: true } : {}),
  };
}

function outputOf(output: Fields): string | Block[] {
  const { type, value } = output;
  if (type === "execution-denied") return typeof output.reason === "string" ? output.reason : "Tool execution denied.";
  if (type === "content" && Array.isArray(value)) return (value as Fields[]).map(outputPartOf);
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

/** Return a part of a tool's output. */
export function outputPartOf(part: Fields): Block {
  if (part.type === "text" && typeof part.text === "string") return { type: "text", text: part.text };
  if (part.data === undefined && part.url === undefined) return opaque(part);
  const media = part.type === "image-data" || part.type === "image-url" ? "image/png" : "application/octet-stream";
  return fileOf({ ...part, data: part.data ?? part.url, mediaType: part.mediaType ?? media });
}

function opaque(raw: unknown): Block {
  return { type: "opaque", provider: PROVIDER, raw };
}
