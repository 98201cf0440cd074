// The settings as the server gets them: only what somebody set. VS Code also reports the defaults that package.json shows, and those
// would win over the project's own pyproject.toml.

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
  if (!settings["interpreter"] && vscode.workspace.isTrusted) {
    const chosen = await chosenInterpreter(scope);
    if (chosen) settings["interpreter"] = chosen;
  }
  return settings;
}
