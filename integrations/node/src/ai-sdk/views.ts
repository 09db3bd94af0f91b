// Messages of a view as messages of a prompt. Those that the view keeps are the SDK's own objects: none is written from
// its neutral form.

import { isSame, sendable, type Block, type ShownMessage } from "../history.js";
import { blocksOf, outputPartOf, partsOf, type Fields, type Message } from "./prompt.js";

/** Return the messages of a view. */
export function shown(messages: readonly Message[], view: readonly (number | ShownMessage)[]): Message[] {
  return view.flatMap((each) => {
    if (typeof each === "number") return messages[each] ?? [];
    const original = each.index === undefined ? undefined : messages[each.index];
    return original ? changed(original, blocksIn(each)) : newMessages(each.role, blocksIn(each));
  });
}

function blocksIn({ content }: ShownMessage): readonly Block[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** Return a message as `blocks` show it. Calls and results that these do not contain are left out. */
function changed(original: Message, blocks: readonly Block[]): Message {
  const { role } = original;
  const old = partsOf(original);
  switch (role) {
    case "system":
      return { ...original, content: textOf(blocks) };
    case "assistant":
      return { ...original, content: saidAgain(old, blocks) };
    case "tool":
      return { ...original, content: old.flatMap((part) => answeredAgain(part, blocks)) };
    default:
      return { ...original, content: givenAgain(old, blocks, (part) => blocksOf(part, role)[0]) };
  }
}

/** Return the parts of an answer. What is neither a text nor a call of the application's stays. */
function saidAgain(old: readonly Fields[], blocks: readonly Block[]): Fields[] {
  const texts = old.filter((part) => part.type === "text");
  const shown = blocks.filter((block) => block.type === "text");
  const isSaid = isSame(neutral(texts.flatMap((part) => blocksOf(part, "assistant"))), shown);
  return old.flatMap((part): Fields[] => {
    if (part.type === "tool-call" && !part.providerExecuted) return calledAgain(part, blocks);
    if (part.type !== "text" || isSaid) return [part];
    return part === texts[0] && shown.length ? [{ ...part, text: textOf(shown) }] : [];
  });
}

function calledAgain(part: Fields, blocks: readonly Block[]): Fields[] {
  const call = blocks.find((block) => block.type === "tool_call" && block.call_id === part.toolCallId);
  if (!call) return [];
  return isSame(call.arguments, neutral(part.input ?? {})) ? [part] : [{ ...part, input: call.arguments }];
}

function answeredAgain(part: Fields, blocks: readonly Block[]): Fields[] {
  if (part.type !== "tool-result") return [part];
  const result = blocks.find((block) => block.type === "tool_result" && block.call_id === part.toolCallId);
  if (!result) return [];
  const { content } = result;
  if (isSame(content, neutral(blocksOf(part, "tool")[0]?.content))) return [part];
  const output = (part.output ?? {}) as Fields;
  if (typeof content === "string") {
    const { providerOptions } = output;
    const type = String(output.type).startsWith("error") ? "error-text" : "text";
    return [{ ...part, output: { type, value: content, ...(providerOptions ? { providerOptions } : {}) } }];
  }
  const old = output.type === "content" ? (output.value as Fields[]) : [];
  return [{ ...part, output: { ...output, type: "content", value: givenAgain(old, content as Block[], outputPartOf) } }];
}

/** Return the parts for blocks: the old ones, and new texts. */
function givenAgain(
  old: readonly Fields[],
  blocks: readonly Block[],
  encode: (part: Fields) => Block | undefined,
): Fields[] {
  const texts = old.filter((part) => part.type === "text");
  const shown = blocks.filter((block) => block.type === "text");
  return blocks.map((block) => {
    const kept = old.find((part) => isSame(neutral(encode(part)), block));
    if (kept) return kept;
    const own = texts.length === shown.length ? texts[shown.indexOf(block)] : undefined;
    return { ...own, type: "text", text: block.type === "text" ? block.text : JSON.stringify(block) };
  });
}

/** Return a value as the daemon has it. */
function neutral(value: unknown): unknown {
  return JSON.parse(sendable(value)) as unknown;
}

/** Return the messages for one that the history does not have. */
function newMessages(role: string, blocks: readonly Block[]): Message[] {
  if (role === "system") return [{ role, content: textOf(blocks) }];
  const results = blocks.filter((block) => block.type === "tool_result");
  const rest = blocks.filter((block) => !["tool_result", "thinking", "opaque"].includes(block.type));
  const messages: Message[] = [];
  if (results.length) messages.push({ role: "tool", content: results.map(newResult) });
  if (rest.length) messages.push({ role: role === "assistant" ? role : "user", content: rest.map(newPart) });
  return messages;
}

function newResult({ call_id: toolCallId, name: toolName = "tool", content }: Block): Fields {
  const value = typeof content === "string" ? content : textOf((content ?? []) as readonly Block[]);
  return { type: "tool-result", toolCallId, toolName, output: { type: "text", value } };
}

function newPart(block: Block): Fields {
  if (block.type !== "tool_call") {
    return { type: "text", text: block.type === "text" ? block.text : JSON.stringify(block) };
  }
  return { type: "tool-call", toolCallId: block.call_id, toolName: block.name, input: block.arguments };
}

function textOf(blocks: readonly Block[]): string {
  return blocks
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}
