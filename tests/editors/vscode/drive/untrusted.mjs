// A workspace that is not trusted: its own daemon is not run, sessions are looked at and not changed.
import { drive, saw, until } from "./workbench.mjs";

const { url, file } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

await drive("untrusted", async (open) => {
  const bench = await open(url);
  const context = await bench.openSession(file);
  await context.locator(".tree .row").first().waitFor();
  await until("the toolbar", async () => (await context.getByRole("button", { name: "Compact…" }).count()) === 1);
  saw("can compact", await context.getByRole("button", { name: "Compact…" }).isEnabled());
  saw("can undo", await context.getByRole("button", { name: "Undo" }).isEnabled());
  saw("can search", await context.getByRole("button", { name: "Search" }).isEnabled());
  await context.locator(".tree .row").first().click();
  await context.locator(".detail pre").waitFor();
  saw("can pin", await context.getByRole("button", { name: "Pin" }).isEnabled());
  await bench.command("compactd: Open Chat");
  const chat = await bench.frame("chat");
  await chat.locator(".why").waitFor();
  saw("chat says", await chat.locator(".why").innerText());
  saw("can write", await chat.locator("textarea").isEnabled());
  await bench.shot("read-only");
});
