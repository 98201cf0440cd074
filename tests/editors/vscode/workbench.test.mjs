// A person at work: a model file of transformers is mended with Ctrl+., a small one is checked by lens, on save and in a report.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { NET } from "./net.mjs";
import { inWorkbench, log, python, root, shownText, until } from "./workbench.mjs";

const T5 = execFileSync(python, ["-c", "import importlib.util as u; print(u.find_spec('transformers').submodule_search_locations[0])"], { encoding: "utf8" }).trim();
const MODEL = fs.readFileSync(path.join(T5, "models/t5/modeling_t5.py"), "utf8");
const LINE = MODEL.split("\n").findIndex(line => line.includes("warnings.warn(__HEAD_MASK_WARNING_MSG")) + 1;
const UNSAFE = `import torch


@torch.compile
def f(x: torch.Tensor):
    y = x * 2 if x.sum() > 0 else x
    return y
`;
const picture = (page, name) =>
  process.env.GRAPHMEND_PICTURES && page.screenshot({ path: path.join(root, "docs/images", `${name}.png`) });

await inWorkbench({ files: { "pyproject.toml": "", "modeling_t5.py": MODEL, "net.py": NET, "unsafe.py": UNSAFE }, machine: { "graphmend.verify.device": "cpu" } }, async vs => {
  const { page } = vs;
  const model = await vs.open("modeling_t5.py");
  await model.click();
  await vs.go(LINE, 1);
  await model.locator(".squiggly-info, .squiggly-warning").first().waitFor();
  log("squiggle in T5");

  await page.keyboard.press("F8"); // the next finding, with its message
  await page.locator(".marker-widget, .zone-widget", { hasText: "warnings.warn()" }).first().waitFor();
  await page.keyboard.press("Escape");
  await model.locator(".view-line", { hasText: /warnings\.warn\(/ }).locator("span > span").filter({ hasText: "warn" }).last().hover();
  const hover = page.locator(".monaco-hover", { hasText: "is assumed to be compiled" }).first();
  await hover.waitFor();
  log("hover shows the evidence");
  await page.keyboard.press("Escape");

  await page.keyboard.press("Control+.");
  const mend = page.locator(".action-widget .monaco-list-row", { hasText: "Mend graph break" }).first();
  await mend.waitFor();
  log("offered:", (await page.locator(".action-widget .monaco-list-row").allInnerTexts()).join(" | "));
  await mend.click();
  await until("the mend", async () => !/warnings\.warn\(/.test((await shownText(model)).split("\n")[0] ?? "") && (await page.locator(".tab.dirty").count()));
  await page.keyboard.press("Control+S");
  await until("the file", () => vs.read("modeling_t5.py") !== MODEL);
  execFileSync(python, ["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())", vs.at("modeling_t5.py")]);
  const before = MODEL.split("\n"), after = vs.read("modeling_t5.py").split("\n");
  const changed = after.filter(line => !before.includes(line));
  assert.ok(changed.length >= 1 && changed.length <= 6, changed.join("\n"));
  assert.deepEqual(before.filter(line => !line.includes("warnings.warn(") && !after.includes(line)), []); // every other line is as it was
  log("T5 is mended on disk:", JSON.stringify(changed));

  const unsafe = await vs.open("unsafe.py");
  await unsafe.locator(".squiggly-warning").first().waitFor();
  await vs.go(6, 18);
  await page.keyboard.press("Control+.");
  await page.locator(".action-widget .monaco-list-row", { hasText: /\(unsafe\)/ }).first().click();
  const preview = page.locator(".panel .monaco-list-row", { hasText: "torch.where" }).first();
  await preview.waitFor();
  assert.equal(await shownText(unsafe).then(text => text.includes("torch.where")), false);
  await preview.locator("input[type=checkbox], .monaco-checkbox, .edit-checkbox").first().click(); // nothing is ticked beforehand
  await page.locator(".monaco-button", { hasText: "Apply" }).first().click();
  await until("the mend", () => shownText(unsafe).then(text => text.includes("torch.where")));
  log("an unsafe mend was shown first");
  await page.keyboard.press("Control+S");

  const net = await vs.open("net.py");
  if (await page.locator(".explorer-folders-view").isVisible()) await page.keyboard.press("Control+B");
  const lens = net.locator(".codelens-decoration a");
  await lens.filter({ hasText: "1 graph break - Verify" }).waitFor();
  await net.locator(".squiggly-warning").first().waitFor();
  log("lens before the check");
  await net.locator(".view-line", { hasText: /print/ }).locator("span > span").filter({ hasText: "print" }).first().hover();
  await page.locator(".monaco-hover", { hasText: "Net.forward is compiled" }).first().waitFor();
  await picture(page, "squiggle");
  await page.keyboard.press("Escape");

  await lens.first().click();
  await until("a checked lens", async () => /2 graphs.*1 graph break.*verified on cpu/.test((await lens.allInnerTexts()).join()), 120_000);
  log("checked by lens:", (await lens.allInnerTexts()).join());

  await net.locator(".view-line", { hasText: /print/ }).click();
  await page.keyboard.press("Control+.");
  const safe = page.locator(".action-widget .monaco-list-row", { hasText: "Mend graph break: emit" }).first();
  await safe.waitFor();
  await picture(page, "quick-fix");
  await safe.click();
  await until("the mend", async () => (await shownText(net)).includes('graphmend.runtime.emit(print, "forward")'));

  await vs.command("Verify File with TorchDynamo");
  await until("a whole graph", async () => /^1 graph, verified on cpu/.test((await lens.allInnerTexts()).join()), 120_000);
  await until("no squiggle", async () => (await net.locator(".squiggly-warning").count()) === 0);
  await picture(page, "lens");
  log("one graph:", (await lens.allInnerTexts()).join());

  await page.locator("#status\\.languageStatus").hover();
  const status = page.locator(".hover-language-status", { hasText: "No graph breaks found" });
  await status.waitFor();
  assert.match(await status.innerText(), /no graph breaks? on cpu/i);
  log("status:", (await status.innerText()).replace(/\s+/g, " "));
  await page.keyboard.press("Escape");

  await page.keyboard.press("Control+Z"); // the report is to show both
  await lens.filter({ hasText: "1 graph break - Verify" }).waitFor(); // what was checked is not this text any more
  await page.keyboard.press("Control+S");
  await vs.command("Show Report of File");
  const report = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  await report.locator("h1", { hasText: "TorchDynamo's graphs" }).waitFor({ timeout: 120_000 });
  const policy = await report.locator("meta[http-equiv='Content-Security-Policy']").first().getAttribute("content");
  assert.match(policy, /default-src 'none'/);
  assert.match(await report.locator("body").innerText(), /Mended/);
  const colour = await report.locator(".graph").first().evaluate(each => getComputedStyle(each).backgroundColor);
  assert.notEqual(colour, "rgba(0, 0, 0, 0)"); // the policy lets the report's own style through
  await picture(page, "report");
  log("report");
});
