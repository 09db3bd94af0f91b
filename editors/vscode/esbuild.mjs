// Bundles the extension into dist/: what runs at activation, the client that is loaded at the first need, and
// the two pages. `node esbuild.mjs --watch` for work on it.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import * as esbuild from "esbuild";

const isWatching = process.argv.includes("--watch");

/** The client is a file of its own, so that activation does not read it. */
const lateClient = {
  name: "late-client",
  setup(build) {
    build.onResolve({ filter: /^\.\/client\.ts$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./client.js", external: true } : undefined,
    );
  },
};

const common = { bundle: true, minify: !isWatching, sourcemap: isWatching, logLevel: "warning", charset: "utf8" };
const host = { ...common, platform: "node", format: "cjs", target: "node20", external: ["vscode"], outdir: "dist" };
const page = { ...common, platform: "browser", format: "iife", target: "es2022", outdir: "dist/webview" };

const builds = [
  // The banner is the first thing that runs: loading counts as activation.
  { ...host, entryPoints: { extension: "src/extension.ts" }, plugins: [lateClient], banner: { js: "var loadingBegan=performance.now(),loadingCpu=process.cpuUsage();" } },
  { ...host, entryPoints: { client: "src/client.ts" } },
  { ...page, entryPoints: { context: "src/webview/context.ts", chat: "src/webview/chat.ts" } },
];
const bundled = new Set();
for (const options of builds) {
  if (isWatching) await (await esbuild.context(options)).watch();
  else {
    const { metafile } = await esbuild.build({ ...options, metafile: true });
    for (const input of Object.keys(metafile.inputs)) {
      const folder = /^node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
      if (folder !== undefined) bundled.add(folder);
    }
  }
}
if (!isWatching) writeFileSync("dist/NOTICE.txt", [...bundled].sort().map(licence).join("\n"));

/** The licence of a package whose code is in the bundles. */
function licence(folder) {
  const { name, version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no licence in its package`);
  return `${name} ${version} (${license})\n\n${readFileSync(`${folder}/${file}`, "utf8").trim()}\n\n`;
}
