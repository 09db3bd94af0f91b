// An agent of the AI SDK with compactd, offline: a scripted model works through 30 reports.
//
//   node with_ai_sdk.mjs    (in a folder with the packages compactd and ai)
//
// It needs the program compactd, and no key and no network. The window is small on purpose, so that compactd has
// something to do.

import { generateText, isStepCount, jsonSchema, tool } from "ai";
import { CompactdSession, compactdModel, compactdRecall } from "compactd/ai-sdk";

const REPORTS = 30;
const WINDOW = 8_000;
const sizes = [];

const readReport = tool({
  description: "Read a report of the inspection.",
  inputSchema: jsonSchema({ type: "object", properties: { number: { type: "integer" } }, required: ["number"] }),
  execute({ number }) {
    const lines = Array.from({ length: 40 }, (_, at) => `gauge ${at * 7 + number}: ${(number * at) % 9}.${at} mm, steady`);
    lines.splice(20, 0, `The seal code of part ${number} is K-${10_000 + number * 317}.`);
    return lines.join("\n");
  },
});

/** A model that reads each report, then looks up what it has forgotten, and answers. */
const scripted = {
  specificationVersion: "v4",
  provider: "example",
  modelId: "scripted",
  supportedUrls: {},
  async doGenerate({ prompt }) {
    sizes.push(Math.round(JSON.stringify(prompt).length / 4));
    const step = sizes.length;
    const call = (toolName, given) => ({ type: "tool-call", toolCallId: `call_${step}`, toolName, input: JSON.stringify(given) });
    let part;
    if (step <= REPORTS) part = call("readReport", { number: step });
    else if (step === REPORTS + 1) part = call("recall", { query: "seal code of part 2 is" });
    else {
      const found = prompt.at(-1).content[0].output.value.split("\n").find((line) => line.includes("seal code of part 2 is"));
      part = { type: "text", text: found?.trim() ?? "I do not know it." };
    }
    return {
      content: [part],
      finishReason: { unified: part.type === "text" ? "stop" : "tool-calls", raw: undefined },
      usage: { inputTokens: {}, outputTokens: {} },
      warnings: [],
    };
  },
};

const sessionId = `example-${Date.now()}`;
const result = await generateText({
  model: compactdModel(scripted, { sessionId, contextWindow: WINDOW }),
  instructions: "You inspect machine parts.",
  tools: { readReport, recall: compactdRecall() },
  stopWhen: isStepCount(REPORTS + 5),
  prompt: `Read reports 1 to ${REPORTS}. Then tell me the seal code of part 2.`,
});

const session = new CompactdSession(sessionId);
const { compaction } = await session.state();
const messages = result.responseMessages;
const count = (value) => value.toLocaleString("en-US");
console.log(`The answer:             ${result.text}`);
console.log(`Model requests:         ${sizes.length}, the largest about ${count(Math.max(...sizes))} tokens of ${count(WINDOW)}`);
console.log(`The whole conversation: ${messages.length} messages, about ${count(Math.round(JSON.stringify(messages).length / 4))} tokens`);
console.log(`Compactions:            ${compaction.count}, without a model call`);
await session.delete();
