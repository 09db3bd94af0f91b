// compactd as a context engine of OpenClaw.

import { CompactdEngine, ID } from "./engine.js";
import { check, type Api } from "./host.js";
import { optionsOf } from "./options.js";
import { end } from "./state.js";
import { registerRecall, registerReduce } from "./tools.js";

export default {
  id: ID,
  name: "compactd",
  description: "Keeps conversations within the model's window without asking a model.",
  register(api: Api): void {
    check(api);
    const options = optionsOf(api.pluginConfig);
    api.registerContextEngine(ID, ({ workspaceDir }) => new CompactdEngine(options, workspaceDir));
    if (options.recall) registerRecall(api, options);
    registerReduce(api, options);
    api.on("gateway_stop", end);
  },
};
