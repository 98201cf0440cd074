// The language status item of Python files: findings, the last check, whether one runs; and the last check's result in the status bar.

import * as vscode from "vscode";
import type { Checked, Server, ServerState } from "./server";

export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem("graphmend.status", { language: "python" });
  private readonly bar = vscode.window.createStatusBarItem("graphmend.result", vscode.StatusBarAlignment.Left);
  private readonly disposables: vscode.Disposable[];
  private readonly checks = new Map<string, Checked>();
  private state: ServerState = "starting";

  constructor(server: Server) {
    this.item.name = "GraphMend";
    this.item.command = { command: "graphmend.showLogs", title: "Show Logs" };
    this.bar.name = "GraphMend";
    this.disposables = [
      this.item,
      this.bar,
      server.onDidChangeState(state => {
        this.state = state;
        this.show();
      }),
      server.onDidCheck(checked => {
        this.checks.set(vscode.Uri.parse(checked.uri).toString(), checked);
        this.show();
      }),
      vscode.languages.onDidChangeDiagnostics(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
      vscode.workspace.onDidCloseTextDocument(document => this.checks.delete(document.uri.toString())),
    ];
    this.show();
  }

  private show(): void {
    const uri = vscode.window.activeTextEditor?.document.uri;
    const checked = uri && this.checks.get(uri.toString());
    this.item.busy = this.state === "starting" || checked?.status === "running";
    if (this.state === "stopped") {
      this.item.severity = vscode.LanguageStatusSeverity.Error;
      this.item.text = "GraphMend does not run";
      this.item.detail = undefined;
      this.item.command = { command: "graphmend.restart", title: "Restart Server" };
      return;
    }
    const count = uri ? findings(uri).length : 0;
    this.item.severity = checked?.status === "failed" ? vscode.LanguageStatusSeverity.Warning : vscode.LanguageStatusSeverity.Information;
    this.item.text = count ? `${count} graph break${count === 1 ? "" : "s"}` : "No graph breaks found";
    this.item.detail = checked ? describe(checked) : vscode.workspace.isTrusted ? "not checked" : "workspace not trusted: nothing is run";
    this.item.command = vscode.workspace.isTrusted
      ? { command: "graphmend.showLogs", title: "Show Logs" }
      : { command: "workbench.trust.manage", title: "Manage Workspace Trust" };
    this.showResult(checked);
  }

  /** The last check of the file in the status bar, in a few words. */
  private showResult(checked: Checked | undefined): void {
    if (!checked) return this.bar.hide();
    const icons = { running: "sync~spin", checked: checked.breaks?.length ? "warning" : "check", cancelled: "circle-slash", refused: "lock", failed: "error" };
    const count = checked.breaks?.length ?? 0;
    const result = checked.status === "checked" ? (count ? `${count} graph break${count === 1 ? "" : "s"}` : "no graph breaks") : checked.status;
    this.bar.text = `$(${icons[checked.status] ?? "info"}) GraphMend: ${result}`;
    this.bar.tooltip = describe(checked);
    this.bar.command = "graphmend.showReport";
    this.bar.show();
  }

  dispose(): void {
    vscode.Disposable.from(...this.disposables).dispose();
  }
}

export function findings(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter(diagnostic => diagnostic.source === "graphmend");
}

function describe(checked: Checked): string {
  if (checked.status === "running") return "checking with TorchDynamo";
  if (checked.status !== "checked") return checked.message;
  const torch = `torch ${checked.torch?.split("+")[0] ?? "unknown"}`;
  return `${checked.message} (${torch}, ${checked.seconds?.toFixed(1) ?? "?"} s)`;
}
