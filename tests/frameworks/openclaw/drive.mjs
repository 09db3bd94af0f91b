// A host of its own, after `src/context-engine/types.ts` and `OpenClawPluginApi` of openclaw 2026.9.6: it loads the
// plugin, and makes the calls that it reads.
//
//   node drive.mjs PLUGIN    one JSON object per line in: {"on": "engine" | "tool" | "middleware", "call", "params"}, or
//                            {"wait": milliseconds}; one per line out: {"result"}, {"error"} or {"warning"}

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const say = (frame) => console.log(JSON.stringify(frame));
process.on("warning", (warning) => say({ warning: warning.message }));
const { default: plugin } = await import(pathToFileURL(process.argv[2]));
const host = {};

const api = (options) => ({
  pluginConfig: options,
  registerContextEngine: (id, factory) => (host.factory = factory),
  registerTool: (factory) => (host.tool = factory),
  registerAgentToolResultMiddleware: (handler) => (host.middleware = handler),
  on: (name, handler) => (host[name] = handler),
});

const calls = {
  register: ({ options, lacks = [] }) => {
    const given = api(options);
    for (const name of lacks) delete given[name];
    plugin.register(given);
  },
  // OpenClaw makes an engine for each turn.
  engine: ({ call, params }) => host.factory({ workspaceDir: "/tmp" })[call](params),
  info: () => host.factory({}).info,
  tool: ({ context, params }) => host.tool(context).execute("c1", params),
  middleware: ({ event, context }) => host.middleware(event, context),
  stop: () => host.gateway_stop(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { on, ...given } = JSON.parse(line);
  try {
    const result = await calls[on](given);
    say({ result: result === undefined ? null : { ...result, rollback: undefined } });
    if (result?.rollback && given.undo) result.rollback();
  } catch (error) {
    say({ error: `${error.name}: ${error.message}` });
  }
}
