// An agent of the OpenAI Agents SDK for TypeScript with compactd, offline: a scripted model works through 30 reports.
//
//   node with_openai_agents.mjs    (in a folder with the packages compactd and @openai/agents)
//
// It needs the program compactd, and no key and no network. The window is small on purpose, so that compactd has
// something to do.

import { Agent, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";
import { CompactdSession, compactdRecall } from "compactd/openai-agents";

const REPORTS = 30;
const WINDOW = 8_000;
const sizes = [];

const readReport = tool({
  name: "read_report",
  description: "Read a report of the inspection.",
  parameters: {
    type: "object",
    properties: { number: { type: "integer" } },
    required: ["number"],
    additionalProperties: false,
  },
  execute({ number }) {
    const lines = Array.from({ length: 40 }, (_, at) => `gauge ${at * 7 + number}: ${(number * at) % 9}.${at} mm, steady`);
    lines.splice(20, 0, `The seal code of part ${number} is K-${10_000 + number * 317}.`);
    return lines.join("\n");
  },
});

/** A model that reads each report, then looks up what it has forgotten, and answers. */
const model = {
  async getResponse({ input }) {
    const items = typeof input === "string" ? [] : input;
    sizes.push(Math.round(JSON.stringify(input).length / 4));
    const step = sizes.length;
    const call = (name, given) => ({
      type: "function_call",
      callId: `call_${step}`,
      name,
      arguments: JSON.stringify(given),
      status: "completed",
    });
    let output;
    if (step <= REPORTS) output = call("read_report", { number: step });
    else if (step === REPORTS + 1) output = call("recall", { query: "seal code of part 2 is" });
    else {
      const found = items.at(-1).output.text.split("\n").find((line) => line.includes("seal code of part 2 is"));
      const text = found?.trim() ?? "I do not know it.";
      output = { type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text }] };
    }
    return { output: [output], usage: new Usage() };
  },
};

setTracingDisabled(true);
const agent = new Agent({
  name: "inspector",
  instructions: "You inspect machine parts.",
  model: "scripted",
  tools: [readReport, compactdRecall()],
});
const session = new CompactdSession(`example-${Date.now()}`, { contextWindow: WINDOW });
// With OpenAI's models, `session.run(agent, text)` does the same in one line.
const runner = new Runner(session.runConfig({ modelProvider: { getModel: () => model } }));
const result = await runner.run(agent, `Read reports 1 to ${REPORTS}. Then tell me the seal code of part 2.`, {
  session,
  maxTurns: REPORTS + 5,
});

const items = await session.getItems();
const { compaction } = await session.state();
const count = (value) => value.toLocaleString("en-US");
console.log(`The answer:             ${result.finalOutput}`);
console.log(`Model requests:         ${sizes.length}, the largest about ${count(Math.max(...sizes))} tokens of ${count(WINDOW)}`);
console.log(`The whole conversation: ${items.length} items, about ${count(Math.round(JSON.stringify(items).length / 4))} tokens`);
console.log(`Compactions:            ${compaction.count}, without a model call`);
await session.clearSession();
