// The language server's life: started, restarted after a crash (not for ever), started anew where settings ask for another one.
// Changes come one at a time.

import * as path from "node:path";
import * as vscode from "vscode";
import {
  type ClientCapabilities, CloseAction, type ConfigurationParams, DidChangeConfigurationNotification, ErrorAction, type Executable,
  type FeatureState, LanguageClient, RevealOutputChannelOn, State, type StaticFeature, TransportKind,
} from "vscode-languageclient/node";
import { findLaunch, type Launch, NoInterpreter } from "./launch";
import { settingsFor } from "./settings";

const RESTARTS = 4;
const WITHIN_MS = 3 * 60_000;

/** The outcome of a check with TorchDynamo: what `graphmend/checked` tells and the command `graphmend.verify` answers. */
export interface Checked {
  readonly uri: string;
  readonly status: "running" | "checked" | "cancelled" | "refused" | "failed";
  readonly message: string;
  readonly torch?: string;
  readonly device?: string;
  readonly seconds?: number;
  readonly breaks?: readonly object[];
}

export type ServerState = "starting" | "running" | "stopped";

/** The name of the language model's key in the secret store. */
export const MODEL_KEY = "graphmend.model.key";

export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private launch: Launch | undefined;
  private queue: Promise<void> = Promise.resolve();
  private crashes: number[] = [];
  private lastError = "";
  private readonly states = new vscode.EventEmitter<ServerState>();
  private readonly checks = new vscode.EventEmitter<Checked>();
  readonly onDidChangeState = this.states.event;
  readonly onDidCheck = this.checks.event;

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly log: vscode.LogOutputChannel,
    private readonly output: vscode.LogOutputChannel,
    private readonly trace: vscode.LogOutputChannel,
  ) {}

  /** Starts the server, or another one in its place. */
  restart(): Promise<void> {
    this.crashes = [];
    return this.inTurn(async () => this.change(await findLaunch(this.context.extensionPath)));
  }

  /** Settings, trust or the chosen interpreter changed: a new server only where it would be another one. */
  reconsider(): Promise<void> {
    return this.inTurn(async () => {
      const launch = await findLaunch(this.context.extensionPath);
      if (this.client?.isRunning() && JSON.stringify(launch) === JSON.stringify(this.launch)) {
        await this.client.sendNotification("graphmend/didChangeTrust", { trusted: vscode.workspace.isTrusted });
        await this.client.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
      } else {
        await this.change(launch);
      }
    });
  }

  /** Hands the key of the language model over, from the secret store; the server keeps it in memory alone. */
  async tellModelKey(): Promise<void> {
    if (!this.client?.isRunning()) return;
    const key = (await this.context.secrets.get(MODEL_KEY)) ?? "";
    await this.client.sendNotification("graphmend/didChangeModelKey", { key });
  }

  /** How GraphMend's command is started: the same one that serves. */
  async command(): Promise<Launch> {
    await this.queue;
    return this.launch ?? findLaunch(this.context.extensionPath);
  }

  async dispose(): Promise<void> {
    await this.inTurn(() => this.stop());
    this.states.dispose();
    this.checks.dispose();
  }

  private inTurn(work: () => Promise<void>): Promise<void> {
    const failed = async (error: unknown) => {
      await this.stop(); // an older one would hide that what was asked for cannot be had
      this.failed(error);
    };
    this.queue = this.queue.then(work).catch(failed);
    return this.queue;
  }

  private async change(launch: Launch): Promise<void> {
    await this.stop();
    this.launch = launch;
    this.lastError = "";
    for (const note of launch.notes) this.log.info(note);
    this.states.fire("starting");
    const client = this.newClient(launch);
    this.client = client;
    client.registerFeature(new AsksForChecks());
    client.onNotification("graphmend/checked", (checked: Checked) => {
      this.checks.fire(checked);
      if (checked.status === "refused" && !vscode.workspace.isTrusted) void offerTrust(checked.message);
    });
    client.onDidChangeState(({ newState }) => {
      const state = newState === State.Running ? "running" : newState === State.Starting ? "starting" : "stopped";
      this.states.fire(state);
    });
    try {
      await client.start();
      await this.tellModelKey();
    } catch (error) {
      await new Promise(resolve => setTimeout(resolve, 500)); // what it wrote before it died arrives after its death
      throw error;
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    if (client?.needsStop()) await client.stop().catch((error: unknown) => this.log.warn(String(error)));
    await client?.dispose().catch(() => undefined);
  }

  private newClient(launch: Launch): LanguageClient {
    const server: Executable = {
      command: launch.command,
      args: [...launch.args, "server"],
      transport: TransportKind.stdio,
      // not the workspace: Python and its libraries look into the current folder
      options: { cwd: path.join(this.context.extensionPath, "bundled") },
    };
    this.log.info(`starting ${[server.command, ...(server.args ?? [])].join(" ")}`);
    let started = false;
    return new QuietClient("graphmend", "GraphMend", server, {
      documentSelector: ["file", "untitled", "vscode-notebook-cell"].map(scheme => ({ scheme, language: "python" })),
      outputChannel: this.output,
      traceOutputChannel: this.trace,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      stdioOptions: {
        stdout: stream => stream.resume(),
        stderr: (stream, output) =>
          void stream.on("data", (data: Buffer | string) => {
            output.error(String(data).trimEnd());
            this.lastError = String(data).trim().split("\n").at(-1) ?? "";
          }),
      },
      initializationOptions: () => ({ trusted: vscode.workspace.isTrusted }),
      initializationFailedHandler: () => false,
      errorHandler: {
        error: (_error, _message, count) => ({ action: (count ?? 0) <= 3 ? ErrorAction.Continue : ErrorAction.Shutdown, handled: true }),
        closed: () => {
          const again = started && this.mayRestart();
          if (started && !again) this.failed(new Error(`it stopped ${RESTARTS + 1} times within three minutes`));
          return { action: again ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true };
        },
      },
      middleware: {
        workspace: {
          configuration: (params: ConfigurationParams) => {
            started = true;
            const scopes = params.items.map(item => (item.scopeUri ? vscode.Uri.parse(item.scopeUri) : undefined));
            return Promise.all(scopes.map(scope => settingsFor(this.context.extension.packageJSON, scope)));
          },
        },
      },
    });
  }

  private mayRestart(): boolean {
    const now = Date.now();
    this.crashes = [...this.crashes.filter(then => now - then < WITHIN_MS), now];
    this.log.warn(`the server stopped (${this.crashes.length} in three minutes): ${this.lastError || "no reason given"}`);
    return this.crashes.length <= RESTARTS;
  }

  /** The one message that says why there is no server, and what to do. */
  private failed(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.log.error(reason);
    this.states.fire("stopped");
    const settings = "Open Settings", again = "Restart", logs = "Show Logs";
    const message =
      error instanceof NoInterpreter ? reason : `GraphMend's server does not run: ${this.lastError || reason}. The logs say more.`;
    const actions = error instanceof NoInterpreter ? [settings, logs] : [again, logs];
    void vscode.window.showErrorMessage(message, ...actions).then(choice => {
      if (choice === settings) void vscode.commands.executeCommand("workbench.action.openSettings", "graphmend.serverInterpreter");
      if (choice === again) void this.restart();
      if (choice === logs) this.output.show();
    });
  }
}

/** Why nothing is run, with the button that changes it. */
async function offerTrust(reason: string): Promise<void> {
  const manage = "Manage Workspace Trust";
  const choice = await vscode.window.showWarningMessage(`GraphMend: ${reason}.`, manage);
  if (choice === manage) await vscode.commands.executeCommand("workbench.trust.manage");
}

/** The client writes its own troubles into the output; the one message about them is `failed`'s. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

/** Declares what this client wants to be told, and what it does itself: rules are shown and trust is managed here. */
class AsksForChecks implements StaticFeature {
  fillClientCapabilities(capabilities: ClientCapabilities): void {
    capabilities.experimental = { ...(capabilities.experimental as object | undefined), graphmend: { checked: true, explainCommand: "graphmend.explainRule", managesTrust: true } };
  }
  initialize(): void {}
  getState(): FeatureState {
    return { kind: "static" };
  }
  clear(): void {}
}
