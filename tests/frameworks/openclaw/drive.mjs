// A host of its own, after `src/context-engine/types.ts` and `OpenClawPluginApi` of openclaw 2026.9.6: it loads the
// plugin, and makes the calls that it reads.
//
//   node drive.mjs PLUGIN [COPY]    one JSON object per line in: {"on": "engine", "call", "params"}, or
//                                   another of `calls`; one per line out: {"result"}, {"error"} or {"warning"}

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const say = (frame) => console.log(JSON.stringify(frame));
process.on("warning", (warning) => say({ warning: warning.message }));
// OpenClaw, too, loads a plugin several times. The engine is of the first one, and the tools are of the last.
const plugins = await Promise.all(process.argv.slice(2).map((path) => import(pathToFileURL(path))));
const { shown } = await import(new URL("views.js", pathToFileURL(process.argv[2])));
let engines = {};
let tools = {};

const api = (options, host) => ({
  pluginConfig: options,
  registerContextEngine: (id, factory) => (host.factory = factory),
  registerTool: (factory) => (host.tool = factory),
  registerAgentToolResultMiddleware: (handler) => (host.middleware = handler),
  on: (name, handler) => (host[name] = handler),
});

const calls = {
  register: ({ options, lacks = [] }) => {
    const loaded = plugins.map(({ default: plugin }) => {
      const host = {};
      const given = api(options, host);
      for (const name of lacks) delete given[name];
      plugin.register(given);
      return host;
    });
    [engines, tools] = [loaded[0], loaded.at(-1)];
  },
  // OpenClaw makes an engine for each turn.
  engine: ({ call, params }) => engines.factory({ workspaceDir: "/tmp" })[call](params),
  tool: ({ context, params }) => tools.tool(context).execute("c1", params),
  middleware: ({ event, context }) => tools.middleware(event, context),
  view: ({ messages, items }) => ({ messages: shown(messages, { items, isWhole: false }) }),
  stop: () => engines.gateway_stop(),
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
