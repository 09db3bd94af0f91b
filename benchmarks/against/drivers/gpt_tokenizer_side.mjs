// gpt-tokenizer 4: the JavaScript tokenizer that most people use.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { messagesIn, pieces, serve } from "./serving.mjs";

const inside = join(process.argv[2], "node_modules", "gpt-tokenizer");
const { countTokens } = await import(pathToFileURL(join(inside, "esm", "encoding", "o200k_base.js")).href);
const { version } = JSON.parse(readFileSync(join(inside, "package.json"), "utf8"));

const rows = {
  count(file) {
    const texts = pieces(messagesIn(file));
    return () => ({ tokens: texts.reduce((sum, text) => sum + countTokens(text), 0) });
  },
};
await serve(rows, version);
