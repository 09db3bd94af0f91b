// A workspace of two folders: a new chat asks in which of them its tools work, and they do. Then the walkthrough.
import { readFileSync } from "node:fs";
import { drive, saw, until } from "./workbench.mjs";

const { url, first, second } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

await drive("roots", async (open) => {
  const bench = await open(url);
  await bench.folders("first", "second");
  await bench.command("compactd: New Chat");
  const rows = bench.page.locator(".quick-input-list .monaco-list-row");
  await rows.filter({ hasText: "second" }).first().waitFor();
  saw("folders offered", await rows.allInnerTexts());
  await bench.pick("second");
  const chat = await bench.frame("chat");
  await chat.locator("textarea").fill("Then empty it on every write.");
  await chat.locator("textarea").press("Enter");
  await chat.getByText("Accept this edit?").waitFor();
  await bench.page.locator(".monaco-diff-editor:visible .view-line").first().waitFor();
  const asking = await bench.frame("chat").catch(() => chat);
  await asking.getByRole("button", { name: "Accept" }).click();
  await asking.getByText("Done: every write empties it").waitFor();
  saw("in the chosen folder", readFileSync(second, "utf8"));
  saw("in the other", readFileSync(first, "utf8"));
  await bench.shot("chat");

  await bench.command("Welcome: Open Walkthrough");
  await bench.pick("Get started with compactd");
  const steps = bench.page.locator(".gettingStartedContainer .getting-started-step:visible");
  await until("the steps", async () => (await steps.count()) >= 3);
  saw("steps", (await steps.allInnerTexts()).map((each) => each.trim().split("\n")[0]));
  await bench.shot("walkthrough");
});
