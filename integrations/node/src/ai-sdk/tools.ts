// A tool that looks up the past, and tools whose outputs are shorter.

import { jsonSchema, type Tool } from "ai";
import { DESCRIPTION, PARAMETERS, question, UNREACHABLE } from "../recall.js";
import { callOf, conversationOf } from "./conversation.js";
import type { CompactdOptions } from "./model.js";

const LEVELS = ["observe", "light", "default", "strong"] as const;
export type ReduceLevel = (typeof LEVELS)[number];
type JsonSchema = Parameters<typeof jsonSchema>[0];

/** Return the tool for `tools: { recall: compactdRecall() }`. With it, the model looks up what was said earlier in its
 * conversation. One object serves all conversations: it finds the conversation by the call. Give `sessionId` if your
 * provider uses the ids of calls more than once. */
export function compactdRecall({ sessionId, ...options }: CompactdOptions = {}): Tool<unknown, string> {
  const given = Object.keys(options).length ? options : undefined;
  return {
    description: DESCRIPTION,
    inputSchema: jsonSchema<unknown>(PARAMETERS as JsonSchema),
    async execute(input: unknown, { toolCallId }: { toolCallId: string }) {
      const mirror = sessionId === undefined ? callOf(toolCallId)?.mirror : conversationOf(sessionId, given).mirror();
      return mirror ? mirror.recall(question(input)) : UNREACHABLE;
    },
  };
}

/** Return a tool that does what `tool` does, and whose long texts are shortened before they enter the conversation.
 * `observe` changes nothing, and only counts what would be saved. */
export function compactdReduce<T extends object>(tool: T, level: ReduceLevel = "default"): T {
  if (!LEVELS.includes(level)) throw new TypeError(`level must be one of ${LEVELS.join(", ")}, not ${String(level)}`);
  const { execute } = tool as { execute?: Execute };
  if (!execute) return tool;
  const shorter: Execute = (input, options) => {
    const output = execute.call(tool, input, options);
    // A tool that gives its output bit by bit is left alone.
    if (typeof output === "object" && output !== null && Symbol.asyncIterator in output) return output;
    return Promise.resolve(output).then((whole) => reduced(whole, input, options.toolCallId, level));
  };
  return { ...tool, execute: shorter };
}

type Execute = (input: unknown, options: { toolCallId: string }) => unknown;

async function reduced(output: unknown, input: unknown, callId: string, level: ReduceLevel): Promise<unknown> {
  const call = typeof output === "string" ? callOf(callId) : undefined;
  if (!call) return output;
  const isObserved = level === "observe";
  const shorter = await call.mirror.reduce({
    name: call.toolName,
    arguments: typeof input === "object" && input !== null ? input : {},
    content: output as string,
    callId,
    level: isObserved ? undefined : level,
    observe: isObserved,
  });
  return shorter ?? output;
}
