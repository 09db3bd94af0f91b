// Where the program `compactd` is, and where it keeps its data.

import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join, resolve, sep } from "node:path";

const PROJECT_MARKS = [".git", ".hg", "pyproject.toml", "setup.py", "package.json"];

/** Return the absolute path of a program. A bare name is looked up in the folders of PATH that are absolute and not
 * inside the current project: what came with a cloned repository is not run because an agent stands in it. */
export function findProgram(name: string, cwd: string): string {
  if (/[/\\]/.test(name)) return name;
  const root = projectRoot(cwd);
  const isInside = (path: string) =>
    root !== undefined && [resolve(path), real(path)].some((each) => each === root || each.startsWith(root + sep));
  for (const entry of (process.env.PATH ?? "").split(delimiter)) {
    for (const ending of process.platform === "win32" ? [".exe", ".cmd"] : [""]) {
      const path = join(entry, name + ending);
      if (isAbsolute(entry) && existsSync(path) && !isInside(entry) && !isInside(path)) return path;
    }
  }
  // A path that is nowhere: starting it fails, and says so.
  return join(sep, "nowhere", name);
}

function projectRoot(cwd: string): string | undefined {
  const home = real(homedir());
  let root: string | undefined;
  for (let folder = real(cwd); folder !== dirname(folder); folder = dirname(folder)) {
    if (folder === home || home.startsWith(folder + sep)) break;
    if (PROJECT_MARKS.some((mark) => existsSync(join(folder, mark)))) root = folder;
  }
  return root;
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

/** Return compactd's data folder: `COMPACTD_HOME`, or else the platform's. It may not exist yet. */
export function dataFolder(): string {
  const { COMPACTD_HOME: chosen, XDG_DATA_HOME: xdg, LOCALAPPDATA: local } = process.env;
  if (chosen) return resolve(chosen);
  if (process.platform === "win32") return join(local || join(homedir(), "AppData", "Local"), "compactd");
  if (process.platform === "darwin") return join(homedir(), "Library", "Application Support", "compactd");
  return join(xdg && isAbsolute(xdg) ? xdg : join(homedir(), ".local", "share"), "compactd");
}
