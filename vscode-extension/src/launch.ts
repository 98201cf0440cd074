// Which GraphMend is run, in which interpreter. In a workspace that is not trusted neither may come from the workspace: VS Code hides
// its values of the restricted settings, and the Python extension, which may have chosen an environment inside it, is not asked.

import * as path from "node:path";
import * as vscode from "vscode";
import { chosenInterpreter, probe } from "./python";
import { expandPath } from "./settings";

const OLDEST: readonly [number, number] = [3, 10];

/** How GraphMend is started; the name of the command and its arguments follow. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** Worth a line in the log. */
  readonly notes: readonly string[];
}

/** Why nothing can be started; the message says what to do. */
export class NoInterpreter extends Error {}

export async function findLaunch(extension: string): Promise<Launch> {
  const settings = vscode.workspace.getConfiguration("graphmend");
  const set = settings.get<string>("serverInterpreter");
  const notes: string[] = [];
  for (const interpreter of set ? [expandPath(set)] : await candidates()) {
    const found = await probe(extension, interpreter);
    if (typeof found === "string") {
      notes.push(`${interpreter}: ${found}`);
    } else if (!isSupported(found.version)) {
      notes.push(`${interpreter} is Python ${found.version.join(".")}`);
    } else {
      const environment = settings.get("importStrategy") === "fromEnvironment";
      if (environment && !found.graphmend) notes.push(`${interpreter} has no graphmend: the bundled one is used`);
      if (!found.libcst) notes.push(withoutLibcst(found.executable, found.version));
      const start = path.join(extension, "bundled", "start.py");
      const args = environment && found.graphmend ? [start, "--environment"] : [start];
      return { command: interpreter, args, notes: [...notes, `Python ${found.version.join(".")}, ${found.executable}`] };
    }
  }
  const looked = notes.length ? ` (${notes.join("; ")})` : "";
  const what = set ? "The setting graphmend.serverInterpreter needs" : "GraphMend found no";
  throw new NoInterpreter(
    `${what} Python ${OLDEST.join(".")} or newer${looked}. ` +
      "Install one, or set graphmend.serverInterpreter to its path; it needs no torch.",
  );
}

async function candidates(): Promise<string[]> {
  const chosen = vscode.workspace.isTrusted ? await chosenInterpreter() : undefined;
  const onPath = process.platform === "win32" ? ["python", "py"] : ["python3", "python"];
  return chosen ? [chosen, ...onPath] : onPath;
}

function isSupported([major, minor]: readonly number[]): boolean {
  return major === OLDEST[0] && minor !== undefined && minor >= OLDEST[1];
}

function withoutLibcst(executable: string, version: readonly number[]): string {
  return (
    `This package has no libcst for Python ${version.slice(0, 2).join(".")} on this platform: findings are shown, mends are not. ` +
    `Run '${executable} -m pip install libcst', or set graphmend.serverInterpreter to another Python.`
  );
}
