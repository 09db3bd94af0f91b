/**
 * The Markdown of a conversation as a tree of plain values, from which the page makes elements.
 *
 * The tree has no HTML, no images and no addresses but those of `addressOf`: markup that asks for anything else stays
 * text that can be read. The editor's own command `markdown.api.render` gives HTML, with the HTML of its text in it
 * (VS Code 1.139, markdown-it with `html: true`, 2026-11-27); a page that shows none needs no sanitizer.
 */

import { Marked, type Token, type Tokens } from "marked";
import { addressOf } from "./address.ts";

export type Inline =
  | { readonly kind: "text" | "code"; readonly text: string }
  | { readonly kind: "strong" | "emphasis" | "struck"; readonly children: readonly Inline[] }
  | { readonly kind: "link"; readonly href: string; readonly children: readonly Inline[] }
  | { readonly kind: "break" };

export type Align = "left" | "center" | "right" | null;

export type Block =
  | { readonly kind: "paragraph"; readonly children: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: number; readonly children: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string; readonly text: string }
  | { readonly kind: "quote"; readonly blocks: readonly Block[] }
  /** `start` is the first number; null in a list without numbers. */
  | { readonly kind: "list"; readonly start: number | null; readonly items: readonly Item[] }
  | { readonly kind: "table"; readonly align: readonly Align[]; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: "rule" };

export type Cell = readonly Inline[];

export interface Item {
  /** Whether a task is done; null if the item is no task. */
  readonly checked: boolean | null;
  readonly blocks: readonly Block[];
}

/**
 * Characters that are parsed at once. The parser's time is quadratic in the worst case: 0.1 s for a piece of this length
 * (marked 18.2.1, 2026-11-27), so pieces of a fixed length make it linear.
 */
const PIECE = 8000;
/** Blocks inside blocks. What is nested deeper is shown as it was written. */
const MAX_DEPTH = 12;

/** The line before fenced code. No backtick follows those of the fence. */
const FENCE = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const NESTED = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){13}/m;
const ENTITIES: { readonly [name: string]: string } = { "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&nbsp;": "\u00a0" };

// HTML stays text. So do definitions of links: they are invisible, and would change what was drawn before them.
const marked = new Marked({ gfm: true, breaks: true });
marked.use({ tokenizer: { html: () => undefined, def: () => undefined } });

/** The blocks of a text. */
export function blocksOf(text: string): Block[] {
  const growing = new GrowingText();
  const { settled, open } = growing.add(text);
  return [...settled, ...open];
}

/** What a piece of an answer changes: blocks that stay as they are from now on, and those that may still change. */
export interface Growth {
  readonly settled: readonly Block[];
  readonly open: readonly Block[];
}

/** A text that comes in pieces. Only its last block is parsed again. */
export class GrowingText {
  /** The text from the first block that may still change. */
  private rest = "";

  add(piece: string): Growth {
    this.rest += piece;
    const settled: Block[] = [];
    while (this.rest.length > PIECE) {
      const cut = cutOf(this.rest);
      if (cut === null) break;
      settled.push(...parsed(this.rest.slice(0, cut)).flatMap(({ blocks }) => blocks));
      this.rest = this.rest.slice(cut);
    }
    const parts = parsed(this.rest);
    let at = 0;
    while (at + 1 < parts.length && this.isWhole(parts, at + 1)) {
      const { length, blocks } = parts[at]!;
      settled.push(...blocks);
      this.rest = this.rest.slice(length);
      at += 1;
    }
    return { settled, open: parts.slice(at).flatMap(({ blocks }) => blocks) };
  }

  /** Whether the first line of a part is complete, so that it is certain that the part before it has ended. */
  private isWhole(parts: readonly Part[], at: number): boolean {
    return this.rest.includes("\n", parts[at - 1]!.length);
  }
}

/** Where a long text is cut: after its first block if that is fenced code, else near `PIECE`; null if code is still open. */
function cutOf(text: string): number | null {
  const fence = FENCE.exec(text.slice(0, text.indexOf("\n")))?.[1];
  if (fence !== undefined) return fenceEnd(text, fence);
  const piece = text.slice(0, PIECE);
  // Not inside of fenced code: the text before it is a piece of its own.
  const opened = openFence(piece);
  if (opened !== null && opened > 0) return opened;
  for (const mark of ["\n\n", "\n", " "]) {
    const found = piece.lastIndexOf(mark);
    if (found > PIECE / 2) return found + mark.length;
  }
  return PIECE;
}

/** Where the fence begins that is still open at the end; null if none is. */
function openFence(text: string): number | null {
  let open: { readonly at: number; readonly fence: string } | null = null;
  let at = 0;
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line)?.[1];
    if (fence !== undefined) {
      if (open === null) open = { at, fence };
      else if (isEnd(line, open.fence)) open = null;
    }
    at += line.length + 1;
  }
  return open?.at ?? null;
}

function fenceEnd(text: string, fence: string): number | null {
  let begin = text.indexOf("\n") + 1;
  for (let end = text.indexOf("\n", begin); end >= 0; end = text.indexOf("\n", begin)) {
    if (isEnd(text.slice(begin, end), fence)) return end + 1;
    begin = end + 1;
  }
  return null;
}

function isEnd(line: string, fence: string): boolean {
  const found = FENCE.exec(line)?.[1];
  return found !== undefined && found[0] === fence[0] && found.length >= fence.length && line.trim() === found;
}

/** A block and the blank lines after it; its length in the text. */
interface Part {
  length: number;
  readonly blocks: readonly Block[];
}

function parsed(text: string): Part[] {
  if (text === "") return [];
  const asWritten = [{ length: text.length, blocks: [{ kind: "paragraph", children: textOf(text.trim()) } as const] }];
  if (NESTED.test(text)) return asWritten;
  let tokens: Token[];
  try {
    tokens = marked.lexer(text);
  } catch {
    return asWritten;
  }
  const parts: Part[] = [];
  for (const token of tokens) {
    const last = parts.at(-1);
    if (token.type === "space" && last !== undefined) last.length += token.raw.length;
    else parts.push({ length: token.raw.length, blocks: blocksIn([token], 0) });
  }
  // The parser reads some texts as others (tabs): without the lengths of this one, nothing of it is settled.
  if (parts.reduce((sum, part) => sum + part.length, 0) !== text.length) return [{ length: text.length, blocks: parts.flatMap(({ blocks }) => blocks) }];
  return parts;
}

function blocksIn(tokens: readonly Token[], depth: number): Block[] {
  return tokens.flatMap((token): Block[] => {
    if (depth > MAX_DEPTH) return [{ kind: "paragraph", children: textOf(token.raw) }];
    switch (token.type) {
      case "space":
      case "checkbox":
        return [];
      case "hr":
        return [{ kind: "rule" }];
      case "heading":
        return [{ kind: "heading", level: (token as Tokens.Heading).depth, children: inlinesOf(token) }];
      case "code":
        return [{ kind: "code", language: languageOf((token as Tokens.Code).lang), text: (token as Tokens.Code).text }];
      case "blockquote":
        return [{ kind: "quote", blocks: blocksIn((token as Tokens.Blockquote).tokens, depth + 1) }];
      case "list":
        return [listOf(token as Tokens.List, depth)];
      case "table":
        return [tableOf(token as Tokens.Table)];
      default:
        return [{ kind: "paragraph", children: inlinesOf(token) }];
    }
  });
}

function listOf(list: Tokens.List, depth: number): Block {
  return {
    kind: "list",
    start: list.ordered ? Number(list.start) : null,
    items: list.items.map((item) => ({ checked: item.task ? item.checked === true : null, blocks: blocksIn(item.tokens, depth + 1) })),
  };
}

function tableOf(table: Tokens.Table): Block {
  return { kind: "table", align: table.align, head: table.header.map(inlinesOf), rows: table.rows.map((row) => row.map(inlinesOf)) };
}

/** The first word of what stands after a fence. */
function languageOf(info: string | undefined): string {
  return /^\S{1,40}/.exec(info ?? "")?.[0] ?? "";
}

function inlinesOf(token: Token | Tokens.TableCell, depth = 0): Inline[] {
  const tokens = "tokens" in token ? token.tokens : undefined;
  if (tokens === undefined || depth > MAX_DEPTH) return textOf("raw" in token ? token.raw : token.text);
  return tokens.flatMap((each): Inline[] => {
    switch (each.type) {
      case "strong":
        return [{ kind: "strong", children: inlinesOf(each, depth + 1) }];
      case "em":
        return [{ kind: "emphasis", children: inlinesOf(each, depth + 1) }];
      case "del":
        return [{ kind: "struck", children: inlinesOf(each, depth + 1) }];
      case "codespan":
        return [{ kind: "code", text: (each as Tokens.Codespan).text }];
      case "br":
        return [{ kind: "break" }];
      case "checkbox":
        return [];
      case "escape":
        return textOf((each as Tokens.Escape).text);
      case "link":
        return linkOf(each as Tokens.Link, inlinesOf(each, depth + 1));
      case "image":
        return linkOf(each as Tokens.Image, textOf(`image: ${(each as Tokens.Image).text || (each as Tokens.Image).href}`));
      default:
        return "tokens" in each && each.tokens !== undefined ? inlinesOf(each, depth + 1) : textOf(each.raw);
    }
  });
}

/** A link if its address is one for the web, else its words and its address, so that nothing is hidden. */
function linkOf(link: Tokens.Link | Tokens.Image, children: readonly Inline[]): Inline[] {
  const href = addressOf(link.href);
  if (href !== null) return [{ kind: "link", href, children }];
  return link.text === link.href ? [...children] : [...children, ...textOf(` (${link.href})`)];
}

function textOf(text: string): Inline[] {
  return text === "" ? [] : [{ kind: "text", text: text.replace(/&(?:lt|gt|amp|quot|nbsp|#39);/g, (entity) => ENTITIES[entity] ?? entity) }];
}
