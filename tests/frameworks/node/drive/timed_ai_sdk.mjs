// Times the AI SDK between two calls of a model that answers at once. benchmarks/frameworks reads what it prints.
//
//   node timed_ai_sdk.mjs WAY SCRIPT    WAY: alone, pruned, or compactd; SCRIPT: a file

import { readFileSync } from "node:fs";
import { generateText, isStepCount, jsonSchema, pruneMessages, tool } from "ai";
import { closeDaemons } from "compactd";
import { compactdModel } from "compactd/ai-sdk";

const [way, script] = process.argv.slice(2);
const given = JSON.parse(readFileSync(script, "utf8"));
const calls = [];
const answers = [];
const toolCallId = ({ number }) => `call_${String(number).padStart(20, "0")}`;

const model = {
  specificationVersion: "v4",
  provider: "timed",
  modelId: "loopback",
  supportedUrls: {},
  async doGenerate() {
    calls.push(performance.now());
    const step = given.steps[calls.length - 1];
    const part = step
      ? { type: "tool-call", toolCallId: toolCallId(step), toolName: step.name, input: JSON.stringify({ number: step.number }) }
      : { type: "text", text: "All parts are inspected." };
    const tokens = { inputTokens: {}, outputTokens: {} };
    const response = { content: [part], finishReason: { unified: step ? "tool-calls" : "stop" }, usage: tokens, warnings: [] };
    answers.push(performance.now());
    return response;
  },
};

const outputs = new Map([...given.history, ...given.steps].map((step) => [`${step.name} ${step.number}`, step.output]));
const own = (name) => [
  name,
  tool({
    description: "Inspect one machine part. Return the report of its inspection, with its seal code.",
    inputSchema: jsonSchema({
      type: "object",
      properties: { number: { type: "integer" } },
      required: ["number"],
      additionalProperties: false,
    }),
    execute: ({ number }) => outputs.get(`${name} ${number}`),
  }),
];
const earlier = given.history.flatMap((step) => [
  {
    role: "assistant",
    content: [{ type: "tool-call", toolCallId: toolCallId(step), toolName: step.name, input: { number: step.number } }],
  },
  {
    role: "tool",
    content: [
      { type: "tool-result", toolCallId: toolCallId(step), toolName: step.name, output: { type: "text", value: step.output } },
    ],
  },
]);
const messages = earlier.length
  ? [{ role: "user", content: "Inspect the parts that came yesterday." }, ...earlier, { role: "assistant", content: "Done." }]
  : [];
const options = { contextWindow: 1_000_000, command: given.command, sessionId: "timed" };
const asked = performance.now();
await generateText({
  model: way === "compactd" ? compactdModel(model, options) : model,
  instructions: given.system,
  tools: Object.fromEntries([...new Set(given.steps.map((step) => step.name))].map(own)),
  stopWhen: isStepCount(100),
  messages: [...messages, { role: "user", content: "Inspect the parts that are left." }],
  ...(way === "pruned"
    ? { prepareStep: (step) => ({ messages: pruneMessages({ messages: step.messages, toolCalls: "before-last-500-messages" }) }) }
    : {}),
});
const gaps = calls.slice(1).map((at, index) => at - answers[index]);
console.log(JSON.stringify({ first: calls[0] - asked, gaps }));
await closeDaemons();
