// Runs an agent for a test: reads one request per line, `{"id", "method", "params"}`, and answers with `{"id", "result"}`
// or `{"id", "error"}`. What an agent's tool is asked goes the other way: `{"call", "name", "arguments"}` is answered by
// `{"call", "output"}`.
//
//   node main.mjs HOST    HOST: the module next to this one that has the methods

import { createInterface } from "node:readline";
import { say, takeOutput } from "./wire.mjs";

process.on("warning", (warning) => say({ warning: warning.name, message: warning.message }));

const host = await import(`./${process.argv[2]}.mjs`);
const lines = createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const frame = JSON.parse(line);
  if (frame.call !== undefined) {
    takeOutput(frame);
    return;
  }
  try {
    say({ id: frame.id, result: (await host[frame.method](frame.params)) ?? null });
  } catch (error) {
    const causes = [];
    for (let each = error; each && causes.length < 5; each = each.cause) causes.push(`${each.name}: ${each.message}`);
    say({ id: frame.id, error: causes.join(" <- ") });
  }
});
