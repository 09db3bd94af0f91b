/** Where the daemon is: explicit setting › bundled › the project's Python environment › PATH. */

export type Origin = "setting" | "bundled" | "environment" | "PATH";

/** A daemon that can be started. */
export interface Found {
  readonly origin: Origin;
  readonly command: string;
  readonly args: readonly string[];
}

/** None; `message` says what was looked for and what to do. */
export interface Missing {
  readonly message: string;
}

/** Where to look. Folders, in their order. */
export interface Places {
  /** The setting: a program and its first arguments; empty where it is not set. */
  readonly setting: readonly string[];
  readonly bundled: readonly string[];
  readonly environments: readonly string[];
  readonly path: readonly string[];
  readonly isWindows: boolean;
}

export type Exists = (path: string) => Promise<boolean>;

export const INSTALL_HINT =
  "Install it with `pipx install git+https://example.org/compactd/compactd`, or into the project's environment, or name it in the setting compactd.command.";

/** The daemon to start, or why there is none. Asks `exists` once for each place until one has it. */
export async function find(places: Places, exists: Exists): Promise<Found | Missing> {
  const [program, ...first] = places.setting;
  if (program !== undefined) {
    const command = isPath(program)
      ? program
      : await inFolders(places.path, program, places.isWindows, exists);
    if (command === null || !(await exists(command))) {
      return { message: `compactd was not found: the setting compactd.command names “${program}”, which is not there.` };
    }
    return { origin: "setting", command, args: withServe(first) };
  }
  const folders: readonly [Origin, readonly string[]][] = [
    ["bundled", places.bundled],
    ["environment", places.environments],
    ["PATH", places.path],
  ];
  for (const [origin, where] of folders) {
    const command = await inFolders(where, "compactd", places.isWindows, exists);
    if (command !== null) return { origin, command, args: ["serve"] };
  }
  return { message: `compactd was not found. ${INSTALL_HINT}` };
}

/** Every place that is looked at, with its origin, for the health check. */
export function looked(places: Places): [Origin, string][] {
  const rows: [Origin, string][] = places.setting.length > 0 ? [["setting", places.setting.join(" ")]] : [];
  for (const folder of places.bundled) rows.push(["bundled", folder]);
  for (const folder of places.environments) rows.push(["environment", folder]);
  for (const folder of places.path) rows.push(["PATH", folder]);
  return rows;
}

/** `${workspaceFolder}`, `${userHome}` and `${env:NAME}` in a setting's words; what is unknown becomes empty. */
export function replaced(
  word: string,
  known: { readonly workspaceFolder: string; readonly userHome: string; readonly env: NodeJS.ProcessEnv },
): string {
  return word.replace(/\$\{(workspaceFolder|userHome|env:([^}]*))\}/g, (_, name: string, variable?: string) =>
    variable !== undefined ? (known.env[variable] ?? "") : name === "userHome" ? known.userHome : known.workspaceFolder,
  );
}

function withServe(args: readonly string[]): readonly string[] {
  return args.some((arg) => arg === "serve" || arg === "--stdio") ? args : [...args, "serve"];
}

function isPath(program: string): boolean {
  return /[/\\]/.test(program);
}

async function inFolders(
  folders: readonly string[],
  name: string,
  isWindows: boolean,
  exists: Exists,
): Promise<string | null> {
  const separator = isWindows ? "\\" : "/";
  const file = isWindows && !/\.\w+$/.test(name) ? `${name}.exe` : name;
  for (const folder of folders) {
    const path = folder.endsWith(separator) ? folder + file : folder + separator + file;
    if (await exists(path)) return path;
  }
  return null;
}
