// A tool that looks up the past, and a guardrail that shortens tool outputs.

import { defineToolOutputGuardrail, tool, ToolGuardrailFunctionOutputFactory } from "@openai/agents";
import { DESCRIPTION, NAME, PARAMETERS, question, UNREACHABLE } from "../recall.js";
import { sessionOfCall } from "./conversation.js";

const LEVELS = ["observe", "light", "default", "strong"] as const;
export type ReduceLevel = (typeof LEVELS)[number];

/** Return the tool `recall` for an agent's `tools`. With it, the model looks up what was said earlier in its
 * conversation. One object serves all agents and sessions: it finds the conversation by the call. */
export function compactdRecall() {
  return tool({
    name: NAME,
    description: DESCRIPTION,
    parameters: { ...PARAMETERS, additionalProperties: true },
    strict: false,
    async execute(given: unknown, _context, details): Promise<string> {
      const mirror = await sessionOfCall(details?.toolCall?.callId);
      return mirror ? mirror.recall(question(given)) : UNREACHABLE;
    },
  });
}

/** Return a guardrail for `tool({ outputGuardrails: […] })` that shortens a tool's long texts before they enter the
 * conversation. `observe` changes nothing, and only counts what would be saved. */
export function compactdReduce(level: ReduceLevel = "default") {
  if (!LEVELS.includes(level)) throw new TypeError(`level must be one of ${LEVELS.join(", ")}, not ${String(level)}`);
  const observe = level === "observe";
  return defineToolOutputGuardrail({
    name: "compactd_reduce",
    async run({ output, toolCall }) {
      const mirror = typeof output === "string" ? await sessionOfCall(toolCall.callId) : undefined;
      if (!mirror || typeof output !== "string") return ToolGuardrailFunctionOutputFactory.allow();
      const shorter = await mirror.reduce({
        name: toolCall.name,
        arguments: argumentsOf(toolCall.arguments),
        content: output,
        callId: toolCall.callId,
        level: observe ? undefined : level,
        observe,
      });
      if (shorter === undefined || shorter === output) return ToolGuardrailFunctionOutputFactory.allow();
      const info = { compactd: { charsBefore: output.length, charsAfter: shorter.length } };
      return ToolGuardrailFunctionOutputFactory.rejectContent(shorter, info);
    },
  });
}

function argumentsOf(text: string): object {
  try {
    const given: unknown = JSON.parse(text || "{}");
    return typeof given === "object" && given !== null && !Array.isArray(given) ? given : {};
  } catch {
    return {};
  }
}
