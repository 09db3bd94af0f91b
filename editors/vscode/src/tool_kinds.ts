/** The tools that a chat offers its model, and how its arguments are read. */

import type { Json } from "./protocol.ts";

export type Use =
  | { readonly kind: "read"; readonly path: string; readonly from: number; readonly lines: number }
  | { readonly kind: "edit"; readonly path: string; readonly oldText: string; readonly newText: string }
  | { readonly kind: "run"; readonly command: string };

export const MOST_LINES = 2000;

/** As `session/start` takes them. */
export const TOOLS: Json[] = [
  {
    name: "read_file",
    description: "Reads a text file of the workspace. The person is asked first.",
    input_schema: {
      type: "object",
      properties: {
        path: { type: "string", description: "Relative to the workspace folder." },
        from_line: { type: "integer", minimum: 1 },
        lines: { type: "integer", minimum: 1, maximum: MOST_LINES },
      },
      required: ["path"],
    },
  },
  {
    name: "edit_file",
    description:
      "Replaces old_text, which must stand in the file exactly once, by new_text. An empty old_text makes a new file. The person sees the change as a diff and accepts it or not.",
    input_schema: {
      type: "object",
      properties: { path: { type: "string" }, old_text: { type: "string" }, new_text: { type: "string" } },
      required: ["path", "old_text", "new_text"],
    },
  },
  {
    name: "run_command",
    description: "Runs a shell command in the workspace folder and gives back its output. The person is asked first.",
    input_schema: { type: "object", properties: { command: { type: "string" } }, required: ["command"] },
  },
];

/** What a call asks for; a string says what is wrong with it. */
export function useOf(name: string, given: Json): Use | string {
  const value = typeof given === "string" ? parsed(given) : given;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return `${name}: the arguments are no object`;
  const words = (key: string) => (typeof value[key] === "string" ? value[key] : null);
  const number = (key: string, otherwise: number) => (typeof value[key] === "number" && value[key] >= 1 ? Math.floor(value[key]) : otherwise);
  const path = words("path");
  switch (name) {
    case "read_file":
      if (!path) return "read_file: `path` is missing";
      return { kind: "read", path, from: number("from_line", 1), lines: Math.min(MOST_LINES, number("lines", MOST_LINES)) };
    case "edit_file": {
      const [oldText, newText] = [words("old_text"), words("new_text")];
      if (!path || oldText === null || newText === null) return "edit_file: `path`, `old_text` or `new_text` is missing";
      return { kind: "edit", path, oldText, newText };
    }
    case "run_command": {
      const command = words("command");
      return command?.trim() ? { kind: "run", command } : "run_command: `command` is missing";
    }
    default:
      return `${name} is not offered in this editor`;
  }
}

/** The file's text after an edit; a string in `wrong` says why it is missing. */
export function edited(before: string | null, oldText: string, newText: string): { text: string } | { wrong: string } {
  if (oldText === "") return before === null ? { text: newText } : { wrong: "the file is there already; name the text to replace" };
  if (before === null) return { wrong: "there is no such file" };
  const at = before.indexOf(oldText);
  if (at < 0) return { wrong: "old_text does not stand in the file" };
  if (before.indexOf(oldText, at + 1) >= 0) return { wrong: "old_text stands in the file more than once" };
  return { text: before.slice(0, at) + newText + before.slice(at + oldText.length) };
}

/** Output cut in its middle where it is longer than `most`, with a mark. */
export function clipped(output: string, most = 30_000): string {
  if (output.length <= most) return output;
  const half = Math.floor(most / 2);
  return `${output.slice(0, half)}\n[… ${output.length - 2 * half} characters left out …]\n${output.slice(-half)}`;
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return null;
  }
}
