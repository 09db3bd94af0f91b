// OpenCode's side of our plugin: `node opencode_recall.mjs PLUGIN MESSAGES`. It asks the tool `recall` for what each line
// of stdin holds, JSON arguments, and writes each answer as a line of JSON.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [plugin, messages] = process.argv.slice(2);
const data = JSON.parse(readFileSync(messages, "utf8"));
const client = {
  session: { messages: async () => ({ data }) },
  app: { log: async () => undefined },
  tui: { showToast: async () => undefined },
};
const { Compactd } = await import(pathToFileURL(plugin).href);
const hooks = await Compactd({ client, directory: process.cwd() });
for await (const line of createInterface({ input: process.stdin })) {
  const text = await hooks.tool.recall.execute(JSON.parse(line), { sessionID: "ses_1" });
  process.stdout.write(`${JSON.stringify(text)}\n`);
}
await hooks.dispose();
