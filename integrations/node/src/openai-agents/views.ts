// Messages of a view as items. Those that the view keeps are the SDK's own objects: none is written from its neutral
// form.

import type { Block, ShownMessage } from "../history.js";
import { callIdOf, saidBy, type Item } from "./items.js";

type Fields = Record<string, unknown>;

/** Return the items of a view. */
export function shown(messages: readonly Item[][], view: readonly (number | ShownMessage)[]): Item[] {
  return view.flatMap((each) =>
    typeof each === "number"
      ? (messages[each] ?? [])
      : (decode(each, each.index === undefined ? undefined : messages[each.index]) as Item[]),
  );
}

/** Return the items for a message that the view shows in another form. `original`: the items that it replaces. */
function decode(message: ShownMessage, original: readonly Item[] | undefined): readonly object[] {
  const { content } = message;
  const blocks: readonly Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const [first] = (original ?? []) as readonly Fields[];
  if (!original || !first) return newItems(message.role, blocks);
  if (message.role === "assistant") return saidAgain(blocks, original as readonly Fields[]);
  if (message.role === "tool") {
    // The output of other tools has a form that a shortened text does not have.
    if (first.type !== "function_call_result" || !blocks[0]) return original;
    const output = outputOf(blocks[0].content);
    // The SDK has a text as an object.
    const isObject = typeof output === "string" && typeof first.output === "object" && !Array.isArray(first.output);
    return [{ ...first, output: isObject ? { type: "text", text: output } : output }];
  }
  return [{ ...first, content: first.role === "system" ? textOf(blocks) : partsOf(blocks) }];
}

/** Return the items of an assistant message with the texts and arguments of `blocks`. Calls that these blocks do not
 * contain are left out. */
function saidAgain(blocks: readonly Block[], original: readonly Fields[]): Fields[] {
  const calls = new Map(blocks.filter((each) => each.type === "tool_call").map((each) => [each.call_id, each]));
  const texts = blocks.filter((each) => each.type === "text");
  const isText = (item: Fields) => (item.type ?? "message") === "message";
  const isOnly = original.filter(isText).length === 1;
  return original.flatMap((item) => {
    const callId = callIdOf(item);
    if (callId !== undefined) {
      const call = calls.get(callId);
      if (!call) return [];
      const given = call.arguments;
      if (item.type !== "function_call" || given === item.arguments) return [item];
      return [{ ...item, arguments: typeof given === "string" ? given : JSON.stringify(given) }];
    }
    if (!isText(item) || !isOnly || JSON.stringify(texts) === JSON.stringify(saidBy(item))) return [item];
    return texts.length ? [{ ...item, content: [{ type: "output_text", text: textOf(texts) }] }] : [];
  });
}

/** Return the items of a message that the history does not have. */
function newItems(role: string, blocks: readonly Block[]): object[] {
  const items: object[] = [];
  const rest: Block[] = [];
  for (const block of blocks) {
    if (block.type === "tool_call") {
      const given = block.arguments;
      const argumentsText = typeof given === "string" ? given : JSON.stringify(given);
      const { call_id: callId, name } = block;
      items.push({ type: "function_call", callId, name, arguments: argumentsText, status: "completed" });
    } else if (block.type === "tool_result") {
      const output = outputOf(block.content);
      const { call_id: callId, name = "tool" } = block;
      items.push({ type: "function_call_result", callId, name, output, status: "completed" });
    } else if (block.type !== "thinking") {
      rest.push(block);
    }
  }
  if (rest.length) {
    items.unshift(
      role === "assistant"
        ? { role, status: "completed", content: [{ type: "output_text", text: textOf(rest) }] }
        : { role, content: role === "system" ? textOf(rest) : partsOf(rest) },
    );
  }
  return items;
}

function outputOf(content: unknown): unknown {
  return typeof content === "string" ? content : partsOf((content ?? []) as readonly Block[]);
}

function textOf(blocks: readonly Block[]): string {
  return blocks
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("\n");
}

/** Return blocks as the content of an item: a text, or parts. */
function partsOf(blocks: readonly Block[]): unknown {
  return blocks.every((block) => block.type === "text") ? textOf(blocks) : blocks.map(asPart);
}

function asPart(block: Block): unknown {
  switch (block.type) {
    case "text":
      return { type: "input_text", text: block.text };
    case "image":
      return { type: "input_image", image: block.url ?? `data:${block.media_type};base64,${block.data}` };
    case "document": {
      const file = block.url ? { url: block.url } : `data:${block.media_type};base64,${block.data}`;
      return { type: "input_file", file, ...(block.title ? { filename: block.title } : {}) };
    }
    case "opaque":
      return block.raw;
    default:
      return { type: "input_text", text: JSON.stringify(block) };
  }
}
