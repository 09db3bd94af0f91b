// The tool that looks up the past, and shorter tool outputs.

import { DESCRIPTION, NAME, PARAMETERS, question, UNREACHABLE } from "../../node/src/recall.js";
import { conversationOf } from "./conversation.js";
import type { Api, ResultEvent, ToolContext, ToolResult } from "./host.js";
import type { Options } from "./options.js";

/** Give the model the tool `recall` in every session. */
export function registerRecall(api: Api, options: Options): void {
  const recall = (sessionId: string) => ({
    name: NAME,
    label: "Recall",
    description: DESCRIPTION,
    parameters: PARAMETERS,
    async execute(_callId: string, given: unknown): Promise<ToolResult> {
      const text = await conversationOf(sessionId, options).mirror().recall(question(given));
      return { content: [{ type: "text", text }], details: { found: text !== UNREACHABLE } };
    },
  });
  api.registerTool(({ sessionId }) => (sessionId === undefined ? null : recall(sessionId)), { name: NAME });
}

/** Shorten the texts of tools before they enter a conversation. */
export function registerReduce(api: Api, options: Options): void {
  const { reduce } = options;
  if (reduce === undefined) return;
  const observe = reduce === "observe";
  const shorten = async (event: ResultEvent, { sessionId }: ToolContext): Promise<{ result: ToolResult } | undefined> => {
    const [only, ...others] = event.result.content;
    if (sessionId === undefined || event.toolName === NAME || others.length || only?.type !== "text" || !only.text) return;
    const shorter = await conversationOf(sessionId, options).mirror().reduce({
      name: event.toolName,
      arguments: event.args,
      content: only.text,
      callId: event.toolCallId,
      level: observe ? undefined : reduce,
      observe,
    });
    if (shorter === undefined || shorter === only.text) return;
    return { result: { ...event.result, content: [{ ...only, text: shorter }] } };
  };
  api.registerAgentToolResultMiddleware(shorten, { runtimes: ["openclaw"] });
}
