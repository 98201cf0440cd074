// Python interpreters: what the Python extension has chosen, and what a given one is good for. The Python extension is never
// required: without it settings and the search path decide.

import { execFile } from "node:child_process";
import * as path from "node:path";
import * as vscode from "vscode";

/** What bundled/probe.py says. */
export interface Probe {
  readonly version: readonly [number, number, number];
  readonly executable: string;
  readonly libcst: boolean;
  readonly graphmend: boolean;
}

/** The part of the Python extension's interface that is used. https://aka.ms/pythonEnvironmentApi */
interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string };
    resolveEnvironment(path: unknown): Promise<{ readonly executable?: { readonly uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function pythonExtension(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  const api = await extension?.activate().then(undefined, () => undefined); // its failure is not ours
  return api?.environments ? api : undefined;
}

/** The interpreter that is chosen in the Python extension, where that is installed and can tell. */
export async function chosenInterpreter(resource?: vscode.Uri): Promise<string | undefined> {
  const environments = (await pythonExtension())?.environments;
  try {
    const environment = await environments?.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
    return environment?.executable?.uri?.fsPath;
  } catch {
    return undefined; // an environment that it cannot read: as if none were chosen
  }
}

export async function onDidChangeInterpreter(listener: () => void): Promise<vscode.Disposable> {
  const api = await pythonExtension();
  return api?.environments.onDidChangeActiveEnvironmentPath(listener) ?? new vscode.Disposable(() => undefined);
}

/** What an interpreter is good for; a string says why it cannot be run. */
export function probe(extension: string, interpreter: string): Promise<Probe | string> {
  // `-I`: neither the current folder nor the environment's variables may change what is imported
  const script = path.join(extension, "bundled", "probe.py");
  return new Promise(resolve => {
    const options = { cwd: extension, timeout: 20_000, windowsHide: true };
    execFile(interpreter, ["-I", script], options, (error, stdout, stderr) => {
      try {
        resolve(JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Probe);
      } catch {
        const missing = (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
        resolve(missing ? "not found" : stderr.trim().split("\n").at(-1) || error?.message || "it printed nothing");
      }
    });
  });
}
