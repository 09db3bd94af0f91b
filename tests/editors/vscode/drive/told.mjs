// A window that does what it is told, one line of JSON after the other, and answers each with a line.
import { createInterface } from "node:readline";
import { drive, saw } from "./workbench.mjs";

const { url, name } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

await drive(name, async (open) => {
  const bench = await open(url);
  let chat = null;
  const deeds = {
    command: async (title) => bench.command(title),
    chat: async (title) => {
      await bench.command(title);
      chat = await bench.frame("chat");
      await chat.locator("textarea:enabled").waitFor();
    },
    say: async (text) => {
      await chat.locator("textarea").fill(text);
      await chat.locator("textarea").press("Enter");
    },
    text: async () => chat.locator(".log").innerText(),
    gauge: async () => bench.gauge(),
    told: async () => `${(await bench.notifications()).join("\n")}\n${await bench.statusText()}`,
    shot: async (shot) => bench.shot(shot),
  };
  saw("answer");
  for await (const line of createInterface({ input: process.stdin })) {
    const [deed, ...given] = JSON.parse(line);
    saw("answer", (await deeds[deed](...given)) ?? null);
  }
});
