// The HTML report of `graphmend verify` in a webview: no scripts, no network, no style but its own.

import { spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import * as path from "node:path";
import * as vscode from "vscode";
import type { Launch } from "./launch";
import { settingsFor } from "./settings";

export async function showReport(context: vscode.ExtensionContext, launch: Launch, document: vscode.TextDocument): Promise<void> {
  if (document.isDirty) await document.save(); // the command reads the file
  const name = path.basename(document.uri.fsPath);
  const panel = vscode.window.createWebviewPanel("graphmend.report", `Graphs of ${name}`, vscode.ViewColumn.Beside, {
    enableScripts: false,
    enableForms: false,
    localResourceRoots: [],
  });
  panel.webview.html = page(`<p>Checking ${escape(name)} with TorchDynamo...</p>`);
  const settings = await settingsFor(context.extension.packageJSON, document.uri);
  const [html, problem] = await verify(launch, document.uri, settings, panel);
  if (html !== undefined) panel.webview.html = html ? withPolicy(html) : page(`<p>${escape(problem)}</p>`);
}

/** The report and the last line of standard error; no report where the panel was closed before. */
function verify(
  launch: Launch, uri: vscode.Uri, settings: Record<string, unknown>, panel: vscode.WebviewPanel,
): Promise<[string | undefined, string]> {
  const options = [
    ["--device", settings["verify.device"]],
    ["--timeout", settings["verify.timeoutSeconds"]],
    ["--python", settings["interpreter"]],
  ].flatMap(([name, value]) => (value ? [String(name), String(value)] : []));
  const args = [...launch.args, "verify", "--mend", "--output-format", "html", ...options, uri.fsPath];
  const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? path.dirname(uri.fsPath);
  return new Promise(resolve => {
    const child = spawn(launch.command, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    let html: string | undefined = "", errors = "";
    panel.onDidDispose(() => {
      html = undefined;
      child.kill();
    });
    child.stdout.on("data", (data: Buffer) => (html = html === undefined ? html : html + data.toString("utf8")));
    child.stderr.on("data", (data: Buffer) => (errors += data.toString("utf8")));
    child.on("error", error => resolve([html, error.message]));
    child.on("close", () => resolve([html, errors.trim().split("\n").at(-1) || "The check gave no report."]));
  });
}

/**
 * The report's style sheet needs the nonce; bars and strips carry their widths in style attributes, each let through by its hash.
 * A report's own text cannot add to them: its quotes are escaped.
 */
export function withPolicy(html: string): string {
  const nonce = randomBytes(16).toString("base64");
  const attributes = new Set(Array.from(html.matchAll(/ style="([^"]*)"/g), found => found[1] ?? ""));
  const hashes = [...attributes].map(text => `'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  const widths = hashes.length ? `'unsafe-hashes' ${hashes.join(" ")}` : "'none'"; // the keyword's name warns of event handlers
  const policy = `default-src 'none'; style-src-elem 'nonce-${nonce}'; style-src-attr ${widths}; form-action 'none'; base-uri 'none'`;
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  return html.replace("<head>", `<head>${meta}`).replace("<style>", `<style nonce="${nonce}">`);
}

function page(body: string): string {
  return withPolicy(`<!doctype html><html><head></head><body>${body}</body></html>`);
}

function escape(text: string): string {
  return text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`);
}
