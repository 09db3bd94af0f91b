import assert from "node:assert/strict";
import { test } from "node:test";
import { find, looked, replaced, type Places } from "../../../../editors/vscode/src/find.ts";

const NOWHERE: Places = { setting: [], bundled: ["/ext/bundled"], environments: ["/project/.venv/bin"], path: ["/usr/bin", "/opt/bin"], isWindows: false };
const there = (...paths: string[]) => async (path: string) => paths.includes(path);

test("the setting goes before everything, the bundled one before the environment, that before PATH", async () => {
  const all = there("/mine/compactd", "/ext/bundled/compactd", "/project/.venv/bin/compactd", "/opt/bin/compactd");

  assert.deepEqual(await find({ ...NOWHERE, setting: ["/mine/compactd"] }, all), { origin: "setting", command: "/mine/compactd", args: ["serve"] });
  assert.deepEqual(await find(NOWHERE, all), { origin: "bundled", command: "/ext/bundled/compactd", args: ["serve"] });
  assert.deepEqual(await find({ ...NOWHERE, bundled: [] }, all), { origin: "environment", command: "/project/.venv/bin/compactd", args: ["serve"] });
  assert.deepEqual(await find({ ...NOWHERE, bundled: [], environments: [] }, all), { origin: "PATH", command: "/opt/bin/compactd", args: ["serve"] });
});

test("a setting of a bare name is looked for on PATH, and keeps its arguments", async () => {
  const found = await find({ ...NOWHERE, setting: ["python3", "-I", "-m", "compactd"] }, there("/usr/bin/python3"));

  assert.deepEqual(found, { origin: "setting", command: "/usr/bin/python3", args: ["-I", "-m", "compactd", "serve"] });
});

test("a setting that says serve or --stdio itself is left as it is", async () => {
  const exists = there("/mine/compactd");

  assert.deepEqual(await find({ ...NOWHERE, setting: ["/mine/compactd", "--stdio"] }, exists), { origin: "setting", command: "/mine/compactd", args: ["--stdio"] });
  assert.deepEqual(await find({ ...NOWHERE, setting: ["/mine/compactd", "serve", "--log", "x"] }, exists), { origin: "setting", command: "/mine/compactd", args: ["serve", "--log", "x"] });
});

test("a setting that names nothing is told, and nothing else is taken in its place", async () => {
  const missing = await find({ ...NOWHERE, setting: ["/gone/compactd"] }, there("/usr/bin/compactd"));

  assert.ok("message" in missing && missing.message.includes("“/gone/compactd”, which is not there"));
});

test("where there is none, the message says what to do", async () => {
  const missing = await find(NOWHERE, there());

  assert.ok("message" in missing && missing.message.includes("pipx install git+https://example.org/compactd/compactd") && missing.message.includes("compactd.command"));
});

test("on Windows the program has its ending", async () => {
  const found = await find({ ...NOWHERE, path: ["C:\\bin"], isWindows: true }, there("C:\\bin\\compactd.exe"));

  assert.deepEqual(found, { origin: "PATH", command: "C:\\bin\\compactd.exe", args: ["serve"] });
});

test("the health check names every place in its order", () => {
  assert.deepEqual(looked({ ...NOWHERE, setting: ["a", "b"] }), [
    ["setting", "a b"], ["bundled", "/ext/bundled"], ["environment", "/project/.venv/bin"], ["PATH", "/usr/bin"], ["PATH", "/opt/bin"],
  ]);
});

test("variables in a setting are replaced, unknown ones by nothing", () => {
  const known = { workspaceFolder: "/w 100%", userHome: "/home/me", env: { X: "y" } };

  assert.equal(replaced("${workspaceFolder}/a ${userHome} ${env:X}${env:NO} ${other}", known), "/w 100%/a /home/me y ${other}");
});
