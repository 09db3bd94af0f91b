// pi's messages in the protocol's shape, as `compactd.formats.pi` reads them from pi's session files.

import type { SessionEntry } from "@earendil-works/pi-coding-agent";

/** A message of the protocol. */
export interface Sent {
  id: string;
  role: "user" | "assistant" | "tool";
  content: string | object[];
  created_at?: number;
  stop_reason?: string;
  meta?: object;
}

interface Block {
  type?: string;
  text?: string;
  thinking?: string;
  id?: string;
  name?: string;
  arguments?: object;
  data?: string;
  mimeType?: string;
}

interface Said {
  role?: string;
  content?: string | Block[];
  stopReason?: string;
  toolCallId?: string;
  toolName?: string;
  isError?: boolean;
  command?: string;
  output?: string;
  excludeFromContext?: boolean;
}

/** Base64 characters of a picture that is mirrored; a larger one is named only. */
const MOST_PICTURE = 1_500_000;

/** What an entry says to a model, or undefined where it says nothing. */
export function sentOf(entry: SessionEntry): Sent | undefined {
  const at = Date.parse(entry.timestamp) / 1000;
  const created = Number.isFinite(at) ? { created_at: at } : {};
  switch (entry.type) {
    case "message": {
      const sent = ofMessage(entry.message as Said);
      return sent && { ...sent, ...created, id: entry.id };
    }
    case "custom_message":
      return { id: entry.id, role: "user", content: blocksOf(entry.content), ...created, meta: { synthetic: true } };
    case "branch_summary":
      return { id: entry.id, role: "user", content: entry.summary, ...created, meta: { synthetic: true } };
    default:
      return undefined;
  }
}

function ofMessage(said: Said): Omit<Sent, "id"> | undefined {
  switch (said.role) {
    case "user":
      return { role: "user", content: blocksOf(said.content) };
    case "assistant": {
      const content = blocksOf(said.content);
      // An attempt that failed before it said anything.
      if (!content.length) return undefined;
      return { role: "assistant", content, stop_reason: said.stopReason };
    }
    case "toolResult": {
      const result = {
        type: "tool_result",
        call_id: said.toolCallId ?? "",
        name: said.toolName,
        content: blocksOf(said.content),
        is_error: said.isError === true,
      };
      return { role: "tool", content: [result] };
    }
    case "bashExecution":
      if (said.excludeFromContext) return undefined;
      return {
        role: "user",
        content: `$ ${said.command ?? ""}\n${said.output ?? ""}`,
        meta: { kind: "bash_execution" },
      };
    case "custom":
      return { role: "user", content: blocksOf(said.content), meta: { synthetic: true } };
    default:
      return undefined;
  }
}

function blocksOf(content: string | Block[] | undefined): object[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.map(ofBlock).filter((block) => block !== undefined);
}

function ofBlock(block: Block): object | undefined {
  switch (block.type) {
    case "text":
      return { type: "text", text: block.text ?? "" };
    case "thinking":
      return { type: "thinking", text: block.thinking ?? "" };
    case "toolCall":
      return { type: "tool_call", call_id: block.id ?? "", name: block.name ?? "", arguments: block.arguments ?? {} };
    case "image": {
      const media = block.mimeType ?? "image/png";
      if ((block.data?.length ?? 0) > MOST_PICTURE) return { type: "text", text: `[a picture, ${media}]` };
      return { type: "image", media_type: media, data: block.data };
    }
    default:
      return undefined;
  }
}

/** Begins each line that a tool, a file or a program wrote, where the daemon quotes it. */
const MARK = "(tool) ";

/** A message as `session/expand` gives it with `quoted`. */
export interface Original {
  entry_id: string;
  message: { role: string };
  quoted?: string;
}

/** A message as `session/expand` quotes it, below a header: about `most` characters around `words`, or its beginning.
 * Each line keeps its mark, so that no text of a tool reads like a person's, or like another record. */
export function recordOf(each: Original, most: number, words = ""): string {
  if (typeof each.quoted !== "string") throw new Error("this compactd cannot quote what it gives back: update it");
  const lines = each.quoted.split("\n");
  const folded = words.toLowerCase();
  const hit = folded ? lines.findIndex((line) => line.toLowerCase().includes(folded)) : -1;
  const kept: string[] = [];
  let left = most;
  for (const line of lines.slice(Math.max(0, hit - 2))) {
    if (left <= 0) break;
    const mark = line.startsWith(MARK) ? MARK : "";
    const at = folded ? line.toLowerCase().indexOf(folded) : -1;
    const from = line.length > left && at > left / 2 ? Math.max(mark.length, at - Math.floor(left / 3)) : mark.length;
    kept.push(line.trim() ? mark + line.slice(from, from + left) : "");
    left -= (kept.at(-1) ?? "").length + 1;
  }
  return `[${each.entry_id} · ${each.message.role}]\n${kept.join("\n")}`;
}
