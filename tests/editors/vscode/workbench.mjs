// A throw-away VS Code workbench: code-server with the packaged extension, in headless Chromium. No request leaves the machine.

import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import net from "node:net";
import os from "node:os";
import path from "node:path";

export const root = path.resolve(import.meta.dirname, "../../..");
export const cache = process.env.GRAPHMEND_EDITORS ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), ".cache"), "graphmend-editors");
/** An interpreter with torch and graphmend. */
export const python = process.env.GRAPHMEND_PYTHON ?? path.join(root, ".venv/bin/python");

const NODE24 = path.join(cache, "node24/node_modules/node/bin/node");
const CODE_SERVER = path.join(cache, "code-server/node_modules/code-server");
const { chromium } = createRequire(path.join(cache, "playwright/package.json"))("playwright-core");

const began = Date.now();
export const log = (...words) => console.log(`${((Date.now() - began) / 1000).toFixed(1)} s`, ...words);
export const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

/** Waits until `ask` gives something true, and returns that. */
export async function until(what, ask, ms = 60_000) {
  for (const end = Date.now() + ms; ; await sleep(50)) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`not within ${ms / 1000} s: ${what}`);
  }
}

const QUIET = {
  "chat.commandCenter.enabled": false, "chat.disableAIFeatures": true, "editor.minimap.enabled": false, "editor.wordBasedSuggestions": "off",
  "extensions.autoCheckUpdates": false, "extensions.autoUpdate": false, "extensions.ignoreRecommendations": true, "files.autoSave": "off",
  "files.hotExit": "off", "git.enabled": false, "security.workspace.trust.enabled": false, "telemetry.telemetryLevel": "off", "update.mode": "none",
  "workbench.colorTheme": "Default Light Modern", "workbench.enableExperiments": false, "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.startupEditor": "none",
};

const vsix = () => {
  const found = fs.readdirSync(path.join(root, "vscode-extension")).filter(name => name.endsWith(".vsix"));
  if (found.length !== 1) throw new Error(`one .vsix is wanted, found ${found.length}: npm run package`);
  return path.join(root, "vscode-extension", found[0]);
};

const freePort = () =>
  new Promise(resolve => {
    const socket = net.createServer().listen(0, "127.0.0.1", () => {
      const { port } = socket.address();
      socket.close(() => resolve(port));
    });
  });

const answers = url =>
  new Promise(resolve => {
    http.get(url, answer => resolve((answer.resume(), answer.statusCode === 200))).on("error", () => resolve(false));
  });

function write(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

/** `settings` are the user's; `machine` those of machine scope, which a remote window reads elsewhere. */
export async function openWorkbench({ files, settings = {}, machine = {}, trustAsks = false, testApi = false }) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "graphmend-vscode-"));
  const workspace = path.join(folder, "workspace"), user = path.join(folder, "user"), home = path.join(folder, "home");
  for (const [name, text] of Object.entries(files)) write(path.join(workspace, name), text);
  write(path.join(user, "User/settings.json"), JSON.stringify({ ...QUIET, "security.workspace.trust.enabled": trustAsks, ...settings }));
  write(path.join(user, "Machine/settings.json"), JSON.stringify({ "graphmend.interpreter": python, ...machine }));
  fs.mkdirSync(home);
  const env = {
    ...process.env, HOME: home, XDG_CONFIG_HOME: `${home}/c`, XDG_DATA_HOME: `${home}/d`, XDG_CACHE_HOME: `${home}/k`, EXTENSIONS_GALLERY: "{}",
  };

  const entry = [path.join(CODE_SERVER, "out/node/entry.js"), "--config", path.join(folder, "config.yaml")];
  const places = ["--user-data-dir", user, "--extensions-dir", path.join(folder, "extensions")];
  const installed = spawnSync(NODE24, [...entry, ...places, "--install-extension", vsix()], { env, encoding: "utf8" });
  if (!/successfully installed/.test(installed.stdout)) throw new Error(`not installed: ${installed.stdout}${installed.stderr}`);
  log("extension installed");

  const port = await freePort();
  // the test interface is in VS Code's own server, inside code-server, and only with the driver of its smoke tests
  const args = testApi
    ? [path.join(CODE_SERVER, "lib/vscode/out/server-main.js"), "--host", "127.0.0.1", "--port", `${port}`, "--without-connection-token",
       "--accept-server-license-terms", "--telemetry-level", "off", "--server-data-dir", `${folder}/server`, ...places, "--enable-smoke-test-driver"]
    : [...entry, ...places, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check",
       ...(trustAsks ? [] : ["--disable-workspace-trust"]), "--disable-getting-started-override", "--disable-proxy"];
  const output = fs.openSync(path.join(folder, "code-server.log"), "w");
  const server = spawn(NODE24, args, { env, stdio: ["ignore", output, output], detached: true });
  const kill = () => {
    try {
      process.kill(-server.pid, "SIGKILL"); // the group: extension hosts, watchers, language servers
    } catch {} // it is gone
  };
  process.on("exit", kill);
  await until("code-server", () => answers(`http://127.0.0.1:${port}/${testApi ? "version" : "healthz"}`));

  const context = await chromium.launchPersistentContext(path.join(folder, "chromium"), {
    executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1180, height: 700 },
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"],
  });
  const page = context.pages()[0] ?? (await context.newPage());
  page.setDefaultTimeout(60_000);
  const outside = [];
  await page.route(url => url.protocol.startsWith("http") && url.hostname !== "127.0.0.1", route => {
    outside.push(route.request().url());
    return route.abort();
  });

  const uri = file => `vscode-remote://127.0.0.1:${port}${file}`;
  const at = name => path.join(workspace, name);
  return {
    page, folder, workspace, outside, uri, at,
    read: name => fs.readFileSync(at(name), "utf8"),
    exists: name => fs.existsSync(at(name)),
    goto: payload => {
      const query = `folder=${encodeURIComponent(workspace)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
      return page.goto(`http://127.0.0.1:${port}/?${query}`, { waitUntil: "commit" });
    },
    editor: name => page.locator(`.monaco-editor[data-uri="${uri(at(name))}"]`),
    /** Shows a file and gives its editor. */
    async open(name) {
      await this.goto([["openFile", uri(at(name))]]);
      const editor = this.editor(name);
      await editor.waitFor();
      return editor;
    },
    /** Runs a command by the name that the palette shows. */
    async command(title) {
      await page.keyboard.press("F1");
      const input = page.locator(".quick-input-widget input");
      await input.waitFor();
      await input.fill(`>${title}`);
      await page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first().waitFor();
      await page.keyboard.press("Enter");
    },
    async go(line, column = 1) {
      await page.keyboard.press("Control+G");
      await page.locator(".quick-input-widget input").fill(`:${line}:${column}`);
      await page.keyboard.press("Enter");
      await until(`line ${line}`, async () => (await page.locator("#status\\.editor\\.selection").innerText()).startsWith(`Ln ${line},`));
    },
    async close(failure) {
      const kept = path.join(cache, "failed", path.basename(process.argv[1], ".test.mjs"));
      fs.rmSync(kept, { recursive: true, force: true });
      if (failure) {
        await page.screenshot({ path: path.join(folder, "screenshot.png") }).catch(() => {});
        fs.mkdirSync(kept, { recursive: true });
        for (const name of ["screenshot.png", "code-server.log"]) fs.cpSync(path.join(folder, name), path.join(kept, name), { force: true });
        for (const logs of [path.join(user, "logs"), `${folder}/server/data/logs`]) {
          if (fs.existsSync(logs)) fs.cpSync(logs, path.join(kept, "logs"), { recursive: true });
        }
        log(`screenshot and logs: ${kept}`);
      }
      await context.close();
      kill();
      await sleep(300);
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The lines that an editor shows, top to bottom. */
export const shownText = editor =>
  editor.locator(".view-line").evaluateAll(lines =>
    lines.map(line => [parseFloat(line.style.top), line.textContent.replace(/\u00a0/g, " ")]).sort((a, b) => a[0] - b[0]).map(each => each[1]).join("\n"),
  );

/** Runs a test in a workbench; what fails leaves a screenshot and the logs. */
export async function inWorkbench(options, test) {
  const workbench = await openWorkbench(options);
  let failure;
  try {
    await test(workbench);
    if (workbench.outside.length) throw new Error(`requests to other machines: ${workbench.outside.join(" ")}`);
    log("PASS");
  } catch (error) {
    failure = error;
    log("FAIL", error.stack);
    process.exitCode = 1;
  }
  await workbench.close(failure);
}
