// Two windows on one session: the second can only read, and says why. In the first, a tool wants out of the workspace.
import { drive, saw, until } from "./workbench.mjs";

const { url } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

await drive("windows", async (open) => {
  const first = await open(url);
  await first.command("compactd: New Chat");
  const talk = await first.frame("chat");
  await talk.locator("textarea").fill("Read a secret outside of this folder.");
  await talk.locator("textarea").press("Enter");
  await talk.getByText("I may not read that").waitFor();
  saw("asked for what is outside", await talk.locator(".ask").count());
  saw("the tool", await talk.locator(".said.tool").last().innerText());
  const second = await open(url);
  await second.command("compactd: Select Session");
  await second.page.locator(".quick-input-list .monaco-list-row", { hasText: /\d+ messages?/ }).first().click();
  saw("told", await until("a word", async () => (await second.notifications()).find((each) => each.includes("open in another program"))));
  saw("gauge", await until("a gauge", async () => (await second.percent()) !== null && second.gauge()));
  saw("spoken", await until("the gauge's words", async () => {
    const spoken = await second.spoken();
    return spoken.includes("another program") && spoken;
  }));
  await second.command("compactd: Open Chat");
  const chat = await second.frame("chat");
  await chat.locator(".why").waitFor();
  saw("chat says", await chat.locator(".why").innerText());
  saw("can write", await chat.locator("textarea").isEnabled());
  await second.command("compactd: Compact Now");
  saw("refused", await until("a refusal", async () => (await second.notifications()).find((each) => each.includes("Close it there"))));
  await second.shot("second");
});
