// Times the OpenAI Agents SDK between two calls of a model that answers at once. benchmarks/frameworks reads what it
// prints.
//
//   node timed_openai_agents.mjs WAY SCRIPT    WAY: alone, or compactd; SCRIPT: a file

import { readFileSync } from "node:fs";
import { Agent, MemorySession, Runner, setTracingDisabled, tool, Usage } from "@openai/agents";
import { closeDaemons } from "compactd";
import { CompactdSession } from "compactd/openai-agents";

const [way, script] = process.argv.slice(2);
const given = JSON.parse(readFileSync(script, "utf8"));
setTracingDisabled(true);
const calls = [];
const answers = [];

const call = ({ name, number }) => ({
  type: "function_call",
  callId: `call_${String(number).padStart(20, "0")}`,
  name,
  arguments: JSON.stringify({ number }),
  status: "completed",
});

const said = (text) => ({
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text }],
});

const model = {
  async getResponse() {
    calls.push(performance.now());
    const step = given.steps[calls.length - 1];
    const response = { output: [step ? call(step) : said("All parts are inspected.")], usage: new Usage() };
    answers.push(performance.now());
    return response;
  },
};

const outputs = new Map([...given.history, ...given.steps].map((step) => [`${step.name} ${step.number}`, step.output]));
const tools = [...new Set(given.steps.map((step) => step.name))].map((name) =>
  tool({
    name,
    description: "Inspect one machine part. Return the report of its inspection, with its seal code.",
    parameters: {
      type: "object",
      properties: { number: { type: "integer" } },
      required: ["number"],
      additionalProperties: false,
    },
    execute: ({ number }) => outputs.get(`${name} ${number}`),
  }),
);
const options = { contextWindow: 1_000_000, command: given.command };
const session = way === "compactd" ? new CompactdSession(undefined, options) : new MemorySession();
const earlier = given.history.flatMap((step) => [
  call(step),
  {
    type: "function_call_result",
    callId: call(step).callId,
    name: step.name,
    status: "completed",
    output: { type: "text", text: step.output },
  },
]);
if (earlier.length) {
  await session.addItems([{ role: "user", content: "Inspect the parts that came yesterday." }, ...earlier, said("Done.")]);
}
const modelProvider = { getModel: () => model };
const agent = new Agent({ name: "inspector", instructions: given.system, tools, model: "gpt-loopback" });
const runner = new Runner(way === "compactd" ? session.runConfig({ modelProvider }) : { modelProvider });
const asked = performance.now();
await runner.run(agent, "Inspect the parts that are left.", { session, maxTurns: 100 });
const gaps = calls.slice(1).map((at, index) => at - answers[index]);
console.log(JSON.stringify({ first: calls[0] - asked, gaps }));
await closeDaemons();
