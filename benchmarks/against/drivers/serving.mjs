// A peer's side of the measurement in node: what serving.py is for Python, with the same lines.
import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";

export const messagesIn = (file) =>
  readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line));

export const blocksOf = (message) =>
  typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content;

/** Every text that a model reads, as serving.pieces has them. */
export const pieces = (messages) =>
  messages.flatMap(blocksOf).map((block) => {
    if (block.type === "text") return block.text;
    return block.type === "tool_call" ? block.name + JSON.stringify(block.arguments) : block.content;
  });

const answer = (value) => writeSync(1, JSON.stringify(value) + "\n");

/** Answers until stdin ends. Nothing else may be printed: consoles are turned to stderr. */
export async function serve(rows, version, store) {
  console.log = console.info = console.error;
  answer({ version, rss: process.memoryUsage().rss });
  let run;
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    try {
      if (asked.do === "store") {
        store(asked.file, asked.to);
        answer({});
      } else if (asked.do === "prepare") {
        run = rows[asked.row](asked.file, Number(asked.keep));
        answer({ rss: process.memoryUsage().rss });
      } else {
        globalThis.gc?.();
        const before = process.memoryUsage().rss;
        const core = process.cpuUsage();
        const began = performance.now();
        const { held, ...told } = await run();
        const took = performance.now() - began;
        const { user, system } = process.cpuUsage(core);
        answer({ s: took / 1000, core_s: (user + system) / 1e6, told, rss: process.memoryUsage().rss, rss_before: before, kept: held !== undefined });
      }
    } catch (error) {
      console.error(error);
      answer({ error: String(error).slice(0, 400) });
    }
  }
}
