import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf } from "../../../../editors/vscode/src/address.ts";
import { GrowingText, blocksOf, type Block, type Inline } from "../../../../editors/vscode/src/markdown.ts";

const text = (said: string): Inline => ({ kind: "text", text: said });
const paragraph = (...children: (Inline | string)[]): Block => ({ kind: "paragraph", children: children.map((each) => (typeof each === "string" ? text(each) : each)) });
const item = (checked: boolean | null, ...blocks: Block[]) => ({ checked, blocks });

/** All the words of some blocks, and the kinds of all values in them. */
function walked(blocks: readonly Block[]): { words: string; kinds: Set<string>; hrefs: string[] } {
  const found = { words: "", kinds: new Set<string>(), hrefs: [] as string[] };
  JSON.stringify(blocks, (key, value: unknown) => {
    if (key === "kind") found.kinds.add(String(value));
    if (key === "text") found.words += String(value);
    if (key === "href") found.hrefs.push(String(value));
    return value;
  });
  return found;
}

/** The blocks of a text that comes in pieces: all that settled, and what was open at the end. */
function grown(whole: string, size: number): Block[] {
  const growing = new GrowingText();
  const settled: Block[] = [];
  let open: readonly Block[] = [];
  for (let at = 0; at < whole.length; at += size) {
    const growth = growing.add(whole.slice(at, at + size));
    settled.push(...growth.settled);
    open = growth.open;
  }
  return [...settled, ...open];
}

const ANSWER = `# A title

Some **bold**, *soft* and ~~struck~~ words,
with \`code\` and [a link](https://example.org/a?b=1&c=2).

- one
  - nested
- [x] done

- after a blank line

3. three
4. four
#not a title
\`\`\`python
def f():

    return "# no title"
\`\`\`
| name | tokens |
|:-----|-------:|
| a    | \`1\`    |

> quoted
still quoted

    indented

Setext
---
***
The end: https://example.org.`;

test("lists, titles, tables, quotes, code and links become blocks", () => {
  assert.deepEqual(blocksOf("## T\n\n1. a\n2. b\n   - c\n\n- [x] d\n- [ ] e"), [
    { kind: "heading", level: 2, children: [text("T")] },
    { kind: "list", start: 1, items: [item(null, paragraph("a")), item(null, paragraph("b"), { kind: "list", start: null, items: [item(null, paragraph("c"))] })] },
    { kind: "list", start: null, items: [item(true, paragraph("d")), item(false, paragraph("e"))] },
  ]);
  assert.deepEqual(blocksOf("|a|b|\n|-|:-:|\n|1|2|"), [{ kind: "table", align: [null, "center"], head: [[text("a")], [text("b")]], rows: [[[text("1")], [text("2")]]] }]);
  assert.deepEqual(blocksOf("> q\n\n---\n\n```js x\n1\n```"), [{ kind: "quote", blocks: [paragraph("q")] }, { kind: "rule" }, { kind: "code", language: "js", text: "1" }]);
  assert.deepEqual(blocksOf("a **b *c*** `<d>`\n~~e~~"), [
    paragraph("a ", { kind: "strong", children: [text("b "), { kind: "emphasis", children: [text("c")] }] }, " ", { kind: "code", text: "<d>" }, { kind: "break" }, { kind: "struck", children: [text("e")] }),
  ]);
});

test("a link has an address for the web, and any other address is words", () => {
  assert.deepEqual(blocksOf("[a](https://x.org/b)"), [paragraph({ kind: "link", href: "https://x.org/b", children: [text("a")] })]);
  for (const address of ["javascript:alert(1)", "command:workbench.action.quit", "vscode://x/y", "file:///etc/passwd", "data:text/html,x", "loader.py#L3", "//x.org", "jAvAsCrIpT:alert(1)"]) {
    const found = walked(blocksOf(`[a](${address})`));
    assert.deepEqual(found.hrefs, []);
    assert.equal(found.words, `a (${address})`);
    assert.equal(addressOf(address), null);
  }
  assert.equal(addressOf("https://[x"), null);
});

test("HTML, images and definitions of links stay words", () => {
  const kinds = new Set(["paragraph", "text", "link", "break", "heading"]);
  for (const [given, said] of [
    ["<script>alert(1)</script>", "<script>alert(1)</script>"],
    ["a <img src=x onerror=alert(1)> b", "a <img src=x onerror=alert(1)> b"],
    ["<style>\n*{display:none}\n</style>", "<style>*{display:none}</style>"],
    ["<!-- hidden -->", "<!-- hidden -->"],
    ["![pixel](https://x.org/p.png)", "image: pixel"],
    ["![](data:image/png;base64,AA)", "image: data:image/png;base64,AA (data:image/png;base64,AA)"],
    ["[//]: # (hidden)", "[//]: # (hidden)"],
    ["&lt;b&gt; &amp;amp; &#8238;", "<b> &amp; &#8238;"],
  ] as const) {
    const found = walked(blocksOf(given));
    assert.equal(found.words, said);
    for (const kind of found.kinds) assert.ok(kinds.has(kind), kind);
  }
});

test("an answer that comes in pieces of any size has the blocks of the whole answer", () => {
  const whole = blocksOf(ANSWER);
  for (let size = 1; size < 90; size += 1) assert.deepEqual(grown(ANSWER, size), whole, `pieces of ${size}`);
});

test("what has settled is not parsed again", () => {
  const growing = new GrowingText();
  growing.add("first\n\nsecond\n\n");

  assert.deepEqual(growing.add("third\n"), { settled: [paragraph("second")], open: [paragraph("third")] });
  assert.deepEqual(growing.add("more"), { settled: [], open: [paragraph("third", { kind: "break" }, "more")] });
});

test("code of any length is one block, also while it comes", () => {
  const lines = Array.from({ length: 3000 }, (_, n) => (n % 5 === 0 ? "" : `line ${n} # of code`)).join("\n");
  const answer = `Look:\n\n${"word ".repeat(1400)}\n\n\`\`\`\`text\n${lines}\n\`\`\`\n\`\`\`\`\nand on`;
  const code = (blocks: readonly Block[]) => blocks.filter((block) => block.kind === "code");

  assert.deepEqual(code(blocksOf(answer)), [{ kind: "code", language: "text", text: `${lines}\n\`\`\`` }]);
  assert.deepEqual(grown(answer, 5000), blocksOf(answer));
});

test("no word of a long text is lost, and no nesting is too deep", () => {
  const words = Array.from({ length: 20_000 }, (_, n) => `w${n}`).join(" ");
  assert.equal(walked(blocksOf(words)).words.replace(/\s/g, ""), words.replace(/\s/g, ""));
  for (const mark of [">", "> ", "- ", "1. ", "> - ", "[", "![", "**a ", "*_", "`", "~~"]) {
    const found = walked(blocksOf(mark.repeat(20_000)));
    assert.ok(found.kinds.size > 0);
  }
  assert.equal(walked(blocksOf(`${"> ".repeat(40)}deep`)).words, `${"> ".repeat(40)}deep`);
});

test("the parser gets no more than a piece at once, whatever is written", () => {
  // Its time is quadratic for each of these. Code and blank lines are no reason to get more.
  for (const mark of ["!", "a_", "a*", "***a", "> a\n", "- a\n", "\n    x", "x\n```y`\n"]) {
    const paragraphs = blocksOf(mark.repeat(24_000 / mark.length));
    assert.ok(paragraphs.length >= 3, `${mark}: ${paragraphs.length}`);
  }
});
