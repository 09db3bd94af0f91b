// Daemons that are of no use: each says so in words, and the editor lives on. One window, its setting changed.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { drive, saw, until } from "./workbench.mjs";

const { url, folder, cases, good } = JSON.parse(process.env.COMPACTD_EDITOR_GIVEN);

// A daemon that does start is given the time that a busy machine may take; the one that hangs is not waited for.
const configure = (command, seconds = 60) => {
  writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "compactd.command": command, "compactd.startTimeout": seconds }));
};

await drive("daemons", async (open) => {
  const bench = await open(url);
  for (const { name, command, says, seconds } of cases) {
    configure(command, seconds);
    // The editor reads its settings when it likes: asked again until it is about this one.
    const said = await until(`a word about ${name}`, async () => {
      await bench.command("compactd: Restart the Daemon");
      return until("a message", async () => (await bench.notifications()).find((each) => each.includes(says)), 15_000).catch(() => null);
    });
    saw(name, said);
    saw(`${name}: spoken`, await until("the gauge's words", async () => {
      const spoken = await bench.spoken();
      return spoken.includes(says) && spoken;
    }));
    if (name === "nothing there") {
      await bench.command("compactd: Health Check");
      await bench.page.locator(".view-line", { hasText: "NOT OK" }).first().waitFor();
      await bench.shot("health");
    }
    await bench.command("Notifications: Clear All Notifications");
  }
  configure(good);
  await until("a good one", async () => {
    await bench.command("compactd: Restart the Daemon");
    return until("a quiet gauge", async () => (await bench.gauge()) === "○ compactd", 60_000).catch(() => null);
  });
  saw("goes on with a good one");
});
