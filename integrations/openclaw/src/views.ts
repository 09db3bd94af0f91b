// Messages of a view as OpenClaw's. Those that the view keeps are OpenClaw's own objects.

import type { Block, ShownMessage, View } from "../../node/src/history.js";
import type { Message } from "./host.js";
import { callIdOf, type Fields } from "./messages.js";

/** Marks the summaries that a view contains. */
const MARK = { compactd: "summary" };

/** Return the messages of a view. */
export function shown(messages: readonly Message[], view: View): Message[] {
  return view.items.flatMap((each) => {
    if (typeof each === "number") return messages[each] ?? [];
    const original = each.index === undefined ? undefined : messages[each.index];
    return original ? changed(each, original as Fields) : made(each, messages as readonly Fields[]);
  });
}

/** Return whether a view of this plugin contains a message, and no history. */
export function isOurs(message: Message): boolean {
  const { details } = message as Fields;
  return message.role === "compactionSummary" && (details as Partial<typeof MARK> | undefined)?.compactd === MARK.compactd;
}

/** Return the message with the contents that the view shows. */
function changed(message: ShownMessage, original: Fields): Message[] {
  const blocks = blocksOf(message.content);
  switch (original.role) {
    case "assistant": {
      const { content: parts } = original;
      const content = Array.isArray(parts) ? saidAgain(blocks, parts) : contentOf(blocks);
      return content.length ? [withContent(original, content)] : [];
    }
    case "toolResult": {
      const output = blocks[0]?.content;
      return [withContent(original, contentOf(blocksOf((output ?? "") as string | Block[])))];
    }
    case "branchSummary":
    case "compactionSummary":
      return [{ ...original, summary: textOf(blocks) } as Message];
    case "bashExecution":
      return [{ role: "user", content: contentOf(blocks), timestamp: original.timestamp } as Message];
    default:
      return [withContent(original, contentOf(blocks))];
  }
}

/** Return the contents of an assistant's message with the texts and arguments of `blocks`. Calls that these do not
 * contain are left out; thoughts stay. */
function saidAgain(blocks: readonly Block[], original: readonly Fields[]): object[] {
  const calls = new Map(blocks.filter((block) => block.type === "tool_call").map((block) => [block.call_id, block]));
  const texts = blocks.filter((block) => block.type === "text").map((block) => ({ type: "text", text: block.text }));
  const isSame = textOf(blocks) === textOf(original.filter((part) => part.type === "text") as unknown as Block[]);
  let isSaid = isSame;
  return original.flatMap((part): object[] => {
    if (part.type === "toolCall") {
      const call = calls.get(callIdOf(part.id));
      return call ? [{ ...part, arguments: call.arguments }] : [];
    }
    if (part.type !== "text" || isSame) return [part];
    if (isSaid) return [];
    isSaid = true;
    return texts;
  });
}

/** Return a message that the history does not have. OpenClaw shows such a summary to the model as it shows its own.
 * It has the time of the first message, so its bytes do not change. */
function made(message: ShownMessage, messages: readonly Fields[]): Message[] {
  const summary = textOf(blocksOf(message.content));
  if (message.role === "tool" || !summary) return [];
  const timestamp = messages[0]?.timestamp ?? 0;
  const answer = messages.find((each) => each.role === "assistant");
  if (message.role === "assistant" && answer) {
    const { api, provider, model } = answer;
    const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
    const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost };
    const content = [{ type: "text", text: summary }];
    return [{ role: "assistant", content, api, provider, model, usage, stopReason: "stop", timestamp } as Message];
  }
  return [{ role: "compactionSummary", summary, tokensBefore: 0, timestamp, details: MARK } as Message];
}

function withContent(original: Fields, content: unknown): Message {
  return { ...original, content } as Message;
}

function blocksOf(content: string | Block[]): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function contentOf(blocks: readonly Block[]): object[] {
  return blocks.map((block) => {
    if (block.type === "text") return { type: "text", text: block.text };
    if (block.type === "image" && block.data) return { type: "image", data: block.data, mimeType: block.media_type };
    return block.type === "opaque" ? (block.raw as object) : { type: "text", text: JSON.stringify(block) };
  });
}

function textOf(blocks: readonly Block[]): string {
  return blocks
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}
