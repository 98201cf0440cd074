// The playground of a built site in Chromium, with everything served from here: node playground.test.mjs SITE

import assert from "node:assert/strict";
import fs from "node:fs/promises";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

import { cache, log, until } from "./vscode/tools.mjs";

const { chromium } = createRequire(path.join(cache, "playwright/package.json"))("playwright-core");
const site = path.resolve(process.argv[2]);
const TYPES = { ".html": "text/html", ".css": "text/css", ".wasm": "application/wasm", ".json": "application/json" };

const server = http.createServer(async (request, response) => {
  let file = path.join(site, decodeURIComponent(new URL(request.url, "http://x").pathname));
  if (file.endsWith("/")) file += "index.html";
  try {
    const body = await fs.readFile(file);
    response.setHeader("Content-Type", TYPES[path.extname(file)] ?? (/\.m?js$/.test(file) ? "text/javascript" : "application/octet-stream"));
    response.end(body);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise(done => server.listen(0, "127.0.0.1", done));
const home = `http://127.0.0.1:${server.address().port}`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 1000 } });
const elsewhere = [];
const errors = [];
page.on("request", request => request.url().startsWith(home) || elsewhere.push(request.url()));
page.on("pageerror", error => errors.push(error.message));

const state = () => page.textContent("#pg-state");
const settled = words => until(`"${words}" in the status`, async () => (await state()).includes(words));

try {
  await page.goto(`${home}/playground/`);
  await until("Python loaded", async () => !(await state()).startsWith("loading"), 120_000);
  await settled("3 places");
  log("loaded");

  const codes = await page.locator(".pg-finding a").allTextContents();
  assert.deepEqual(codes.map(text => text.split(" ")[0]), ["GM101", "GM201", "GM301"]);
  assert.match(await page.innerText("#pg-findings"), /h\.abs\(\)\.max\(\) returns a Tensor/);
  const rule = await page.locator(".pg-finding a").first().evaluate(link => link.href);
  assert.equal((await page.request.get(rule)).status(), 200, rule);
  assert.match(await page.innerText("#pg-diff"), /^\+.*graphmend\.runtime\.emit\(print/m);

  // The underline lies under the text that it speaks of: line 12 of the field, from its twelfth character on.
  const place = await page.evaluate(() => {
    const mark = document.querySelector("#pg-marks span");
    const field = document.querySelector("#pg-text");
    const style = getComputedStyle(field);
    const top = field.getBoundingClientRect().top + parseFloat(style.paddingTop) + 11 * parseFloat(style.lineHeight);
    const box = mark.getBoundingClientRect();
    return { text: mark.textContent, off: box.top + box.height / 2 - (top + parseFloat(style.lineHeight) / 2) };
  });
  assert.equal(place.text, "h.abs().max() > 10");
  assert.ok(Math.abs(place.off) < 3, `the underline is ${place.off} px off`);
  log("underlined");

  // Each key is answered in time.
  const seconds = [];
  await page.locator("#pg-text").click();
  await page.keyboard.press("Control+End");
  for (const key of "    y = x") {
    const before = await page.getAttribute("#pg-state", "data-checks");
    const began = Date.now();
    await page.keyboard.type(key);
    await until("an answer", async () => (await page.getAttribute("#pg-state", "data-checks")) !== before);
    seconds.push((Date.now() - began) / 1000);
  }
  seconds.sort((a, b) => a - b);
  log(`a key is answered within ${seconds.at(-1)} s, mostly ${seconds[seconds.length >> 1]} s`);

  // A text that does not parse says where; one without breaks says so.
  await page.fill("#pg-text", "def f(:\n");
  await settled("line 1");
  assert.equal(await page.locator(".pg-finding").count(), 0);
  await page.fill("#pg-text", "import torch\n\n@torch.compile\ndef f(x):\n    return x + 1\n");
  await settled("No graph breaks found");

  // The link brings the text back, whatever is in it.
  const shared = "import torch\n\n@torch.compile\ndef f(x):\n    print('größer 🔥', x)\n    return x\n";
  await page.fill("#pg-text", shared);
  await settled("1 place");
  await page.click("#pg-share");
  await until("a link", () => page.url().includes("#"));
  const other = await browser.newPage();
  await other.goto(page.url());
  await until("the text in the other page", async () => (await other.inputValue("#pg-text")) === shared);
  await until("its finding", async () => (await other.locator(".pg-finding").count()) === 1, 120_000);
  assert.equal(await other.textContent("#pg-marks span"), "print('größer 🔥', x)");
  log("shared");

  assert.deepEqual(elsewhere, []);
  assert.deepEqual(errors, []);
  console.log("playground: ok");
} catch (error) {
  await page.screenshot({ path: path.join(process.env.GRAPHMEND_KEPT ?? ".", "playground.png") });
  throw error;
} finally {
  await browser.close();
  server.close();
}
