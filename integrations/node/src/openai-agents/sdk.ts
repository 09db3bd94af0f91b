// Whether the installed SDK is one that this adapter knows.

import * as sdk from "@openai/agents";

/** The versions that the tests run with. */
export const TESTED = "@openai/agents 0.20";
const NEEDED = [
  "Runner",
  "MemorySession",
  "UserError",
  "applySessionHistoryMutations",
  "defineToolOutputGuardrail",
  "getDefaultModel",
  "tool",
  "ToolGuardrailFunctionOutputFactory",
];

const missing = NEEDED.filter((name) => typeof (sdk as Record<string, unknown>)[name] === "undefined");
if (missing.length) {
  throw new Error(
    `@openai/agents has no ${missing.join(", ")}. compactd was tested with ${TESTED}: install that version, or a newer ` +
      "compactd",
  );
}
