// The settings as the server gets them: only what somebody set. VS Code also reports the defaults that package.json shows, and those
// would win over the project's own pyproject.toml.

import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { chosenInterpreter } from "./python";

interface Manifest {
  readonly contributes: { readonly configuration: { readonly properties: Record<string, unknown> } };
  readonly capabilities: { readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] } };
}

/** The `graphmend` section for one scope, keys with dots. */
export async function settingsFor(manifest: Manifest, scope?: vscode.Uri): Promise<Record<string, unknown>> {
  const configuration = vscode.workspace.getConfiguration("graphmend", scope);
  const restricted = new Set(manifest.capabilities.untrustedWorkspaces.restrictedConfigurations);
  const settings: Record<string, unknown> = {};
  for (const name of Object.keys(manifest.contributes.configuration.properties)) {
    const key = name.slice("graphmend.".length);
    const set = configuration.inspect(key);
    const own = vscode.workspace.isTrusted || !restricted.has(name);
    const value = (own ? (set?.workspaceFolderValue ?? set?.workspaceValue) : undefined) ?? set?.globalValue;
    if (value !== undefined) settings[key] = value;
  }
  const interpreter = settings["interpreter"];
  if (typeof interpreter === "string") settings["interpreter"] = expandPath(interpreter, scope);
  if (!interpreter && vscode.workspace.isTrusted) {
    const chosen = await chosenInterpreter(scope);
    if (chosen) settings["interpreter"] = chosen;
  }
  return settings;
}

/** A path as people write it in settings: `${workspaceFolder}`, `~`, relative to the folder; a bare name is looked for on the path. */
export function expandPath(text: string, scope?: vscode.Uri): string {
  const folder = (scope && vscode.workspace.getWorkspaceFolder(scope)) ?? vscode.workspace.workspaceFolders?.[0];
  const full = text.replace("${workspaceFolder}", folder?.uri.fsPath ?? "").replace(/^~(?=$|[\\/])/, os.homedir());
  return /[\\/]/.test(full) && folder ? path.resolve(folder.uri.fsPath, full) : full;
}
