// A throw-away VS Code workbench in headless Chromium. No request leaves the machine; what fails leaves its evidence.

import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { startCodeServer } from "./code-server.mjs";
import { cache, kept, log, python, sleep, until } from "./tools.mjs";

const { chromium } = createRequire(path.join(cache, "playwright/package.json"))("playwright-core");

const QUIET = {
  "breadcrumbs.enabled": false, "chat.commandCenter.enabled": false, "chat.disableAIFeatures": true, "editor.minimap.enabled": false,
  "editor.occurrencesHighlight": "off", "editor.wordBasedSuggestions": "off", "extensions.autoCheckUpdates": false, "extensions.autoUpdate": false,
  "extensions.ignoreRecommendations": true, "files.autoSave": "off", "files.hotExit": "off", "git.enabled": false, "telemetry.telemetryLevel": "off",
  "update.mode": "none", "window.commandCenter": false, "workbench.activityBar.location": "hidden", "workbench.colorTheme": "Default Light Modern",
  "workbench.enableExperiments": false, "workbench.layoutControl.enabled": false, "workbench.navigationControl.enabled": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden", "workbench.startupEditor": "none",
};

/** A workspace with these files, open in a browser. `settings` are the user's; `machine` those of machine scope, which a
 * remote window reads elsewhere; `extensions` are folders of other extensions. */
export async function inWorkbench(options, test) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "graphmend-vscode-"));
  const opened = [];
  let vs, failure;
  fs.rmSync(kept, { recursive: true, force: true });
  try {
    vs = await openWorkbench({ settings: {}, machine: {}, extensions: [], trustAsks: false, testApi: false, ...options, folder }, opened);
    await test(vs);
    if (vs.outside.length) throw new Error(`requests to other machines: ${vs.outside.join(" ")}`);
    log("PASS");
  } catch (error) {
    failure = error;
    log("FAIL", error.stack);
    process.exitCode = 1;
    await keep(folder, vs?.page);
  }
  for (const close of opened.reverse()) await close();
  await sleep(300);
  fs.rmSync(folder, { recursive: true, force: true });
}

async function keep(folder, page) {
  fs.mkdirSync(kept, { recursive: true });
  await page?.screenshot({ path: path.join(kept, "screenshot.png") }).catch(() => {});
  for (const [from, to] of [["code-server.log"], ["user/logs", "logs"], ["server/data/logs", "logs"], ["user/Machine"], ["user/User/settings.json"]]) {
    const place = path.join(folder, from);
    if (fs.existsSync(place)) fs.cpSync(place, path.join(kept, to ?? path.basename(from)), { recursive: true });
  }
  log(`screenshot and logs: ${kept}`);
}

async function openWorkbench({ folder, files, settings, machine, extensions, trustAsks, testApi }, opened) {
  const workspace = path.join(folder, "workspace");
  for (const [name, text] of Object.entries(files)) write(path.join(workspace, name), text);
  const user = { ...QUIET, "security.workspace.trust.enabled": trustAsks, ...settings };
  const ofMachine = { "graphmend.interpreter": python, ...machine };
  const set = () => {
    write(path.join(folder, "user/User/settings.json"), JSON.stringify(user));
    write(path.join(folder, "user/Machine/settings.json"), JSON.stringify(ofMachine));
  };
  set();
  const { port, kill } = await startCodeServer({ folder, extensions, trustAsks, testApi });
  opened.push(kill);
  const context = await chromium.launchPersistentContext(path.join(folder, "chromium"), {
    executablePath: "/usr/bin/chromium", headless: true, viewport: { width: 1000, height: 600 },
    deviceScaleFactor: process.env.GRAPHMEND_PICTURES ? 2 : 1,
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync"],
  });
  opened.push(() => context.close());
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
    write: (name, text) => fs.writeFileSync(at(name), text),
    exists: name => fs.existsSync(at(name)),
    /** Changes the user's settings, or those of machine scope, while the workbench runs. */
    set: (changes, changesOfMachine = {}) => set(Object.assign(user, changes), Object.assign(ofMachine, changesOfMachine)),
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
  };
}

/** Runs a suite inside the extension host, through VS Code's interface for extension tests. */
export async function inExtensionHost(options, suite) {
  const none = JSON.stringify({ name: "none", publisher: "test", version: "0.0.1", engines: { vscode: "*" } }); // the packaged one is under test
  await inWorkbench({ ...options, files: { ...options.files, "none/package.json": none }, testApi: true }, async vs => {
    let finish;
    const finished = new Promise(resolve => (finish = resolve));
    await vs.page.exposeFunction("codeAutomationLog", (kind, words) => {
      if (String(words[0]).startsWith("suite:")) log(...words.map(String));
    });
    await vs.page.exposeFunction("codeAutomationExit", finish);
    await vs.goto([
      ["extensionDevelopmentPath", vs.uri(vs.at("none"))],
      ["extensionTestsPath", vs.uri(path.join(import.meta.dirname, suite))],
      ["skipWelcome", "true"],
    ]);
    const timer = setTimeout(() => finish("no end within 480 s"), 480_000);
    const status = await finished;
    clearTimeout(timer);
    if (status !== 0) throw new Error(`the suite ended with ${status}`);
  });
}

function write(file, text) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, text);
}

/** The lines that an editor shows, top to bottom. */
export const shownText = editor =>
  editor.locator(".view-line").evaluateAll(lines =>
    lines.map(line => [parseFloat(line.style.top), line.textContent.replace(/\u00a0/g, " ")]).sort((a, b) => a[0] - b[0]).map(each => each[1]).join("\n"),
  );
