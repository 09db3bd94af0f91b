// An agent of Mastra with a model that compactd wraps.

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAI as createOpenAI3 } from "@ai-sdk/openai-3";
import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { closeDaemons } from "compactd";
import { CompactdSession, compactdModel, compactdRecall } from "compactd/ai-sdk";
import { z } from "zod";
import { useTool } from "./wire.mjs";

const messages = [];
let agent;

export function begin({ url, model, wire, sdk, system, tools, options }) {
  const openai = (sdk === 6 ? createOpenAI3 : createOpenAI)({ apiKey: "none", baseURL: url });
  const own = tools.map(({ name, description }) => [
    name,
    createTool({
      id: name,
      description,
      inputSchema: z.object({ number: z.number().int() }),
      execute: (input) => useTool(name, input),
    }),
  ]);
  agent = new Agent({
    id: "inspector",
    name: "inspector",
    instructions: system,
    model: compactdModel(wire === "chat" ? openai.chat(model) : openai(model), options),
    tools: { ...Object.fromEntries(own), recall: compactdRecall() },
  });
}

export async function ask({ text, stream }) {
  messages.push({ role: "user", content: text });
  const options = { maxSteps: 100, providerOptions: { compactd: { sessionId: "one" } } };
  const result = stream
    ? await (await agent.stream(messages, options)).getFullOutput()
    : await agent.generate(messages, options);
  messages.push(...result.response.messages);
  return result.text;
}

export const state = () => new CompactdSession("one").state();
export const close = () => closeDaemons();
