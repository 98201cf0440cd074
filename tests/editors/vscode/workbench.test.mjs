// A person at work: a small model is read, checked by lens and on save, mended with and without a preview, and reported on.

import assert from "node:assert/strict";
import path from "node:path";
import { GATE } from "./models.mjs";
import { log, root, until } from "./tools.mjs";
import { inWorkbench, shownText } from "./workbench.mjs";

const CHECK_MS = 120_000;

await inWorkbench({ files: { "pyproject.toml": "", "gate.py": GATE }, machine: { "graphmend.verify.device": "cpu" } }, async vs => {
  const { page } = vs;
  const picture = async name =>
    process.env.GRAPHMEND_PICTURES && page.screenshot({ path: path.join(root, "docs/images", `${name}.png`) });
  const gate = await vs.open("gate.py");
  if (await page.locator(".explorer-folders-view").isVisible()) await page.keyboard.press("Control+B");
  const lens = gate.locator(".codelens-decoration a");
  const lensSays = (what, text) => until(what, async () => text.test((await lens.allInnerTexts()).join()), CHECK_MS);
  /** The quick fix of this name for what stands at `text`. Just after an edit lines still move, and the menu may be empty. */
  const quickFix = async (text, title) => {
    const row = page.locator(".action-widget .monaco-list-row", { hasText: title });
    await until(`the quick fix ${title}`, async () => {
      const lines = (await shownText(gate)).split("\n"), at = lines.findIndex(each => each.includes(text));
      await vs.go(at + 1, lines[at].indexOf(text) + 1);
      await page.keyboard.press("Control+.");
      return row.waitFor({ timeout: 5000 }).then(() => true, () => page.keyboard.press("Escape"));
    });
    return row;
  };
  const line = text => gate.locator(".view-line", { hasText: text });

  await lens.filter({ hasText: "2 graph breaks - Verify" }).waitFor();
  await gate.locator(".squiggly-warning").first().waitFor();
  log("lens before the check");
  await line(/y\.mean\(\)/).locator("span > span").filter({ hasText: "mean" }).first().hover();
  const hover = page.locator(".monaco-hover", { hasText: "y.mean() returns a Tensor" }).first();
  await hover.waitFor();
  log("hover:", (await hover.innerText()).replace(/\s+/g, " "));
  await picture("squiggle");
  await page.keyboard.press("Escape");

  await lens.first().click();
  await lensSays("a checked lens", /3 graphs.*2 graph breaks.*verified on cpu/);
  log("checked by lens:", (await lens.allInnerTexts()).join());
  const result = page.locator(".statusbar-item[id$='graphmend.result']");
  const barSays = text => until(`the status bar: ${text}`, async () => (await result.innerText()).trim() === text);
  await barSays("GraphMend: 2 graph breaks");

  const safe = await quickFix("print(", "Mend graph break: emit");
  await picture("quick-fix");
  await safe.click();
  await until("the mend", async () => (await shownText(gate)).includes('emit(print, "gated")'));
  log("a safe mend is made at once");

  await (await quickFix("y.mean()", /torch\.where \(unsafe\)/)).click();
  const preview = page.locator(".panel .monaco-list-row", { hasText: "torch.where" }).first();
  await preview.waitFor();
  assert.equal(await shownText(gate).then(text => text.includes("torch.where")), false);
  await preview.locator("input[type=checkbox], .monaco-checkbox, .edit-checkbox").first().click(); // nothing is ticked beforehand
  await preview.locator(".monaco-icon-label, .monaco-highlighted-label").first().hover();
  const annotation = page.locator(".monaco-hover", { hasText: "Unsafe mend" }).first();
  await annotation.waitFor();
  assert.match(await annotation.innerText(), /the result has the promoted one/);
  await picture("preview");
  await page.locator(".monaco-button", { hasText: "Apply" }).first().click();
  await until("the mend", () => shownText(gate).then(text => text.includes("torch.where")));
  log("an unsafe mend was shown first, with its reason");

  await vs.command("Verify File with TorchDynamo");
  await lensSays("a whole graph", /^1 graph, verified on cpu/);
  await until("no squiggle", async () => (await gate.locator(".squiggly-warning").count()) === 0);
  await barSays("GraphMend: no graph breaks");
  await picture("lens");
  log("one graph:", (await lens.allInnerTexts()).join());

  await page.locator("#status\\.languageStatus").hover();
  const status = page.locator(".hover-language-status", { hasText: "No graph breaks found" });
  await status.waitFor();
  assert.match(await status.innerText(), /no graph breaks? on cpu/i);
  log("status:", (await status.innerText()).replace(/\s+/g, " "));
  await page.keyboard.press("Escape");

  vs.set({}, { "graphmend.verify.mode": "onSave" });
  await line(/tanh/).click();
  await page.keyboard.press("End");
  await page.keyboard.type("  # mended");
  await lens.filter({ hasText: "No graph breaks found - Verify" }).waitFor(); // what was checked is not this text any more
  await until("the check on save", async () => {
    await page.keyboard.type("!"); // the new setting may not be known yet
    await page.keyboard.press("Control+S");
    return lens.filter({ hasText: "1 graph, verified on cpu" }).waitFor({ timeout: 10_000 }).then(() => true, () => false);
  });
  assert.match(vs.read("gate.py"), /# mended!/);
  log("saving checked:", (await lens.allInnerTexts()).join());
  vs.set({}, { "graphmend.verify.mode": "onCommand" });

  vs.write("gate.py", GATE); // somebody else changed it; the report is to show both states
  await lens.filter({ hasText: "2 graph breaks - Verify" }).waitFor();
  await vs.command("Show Report of File");
  const report = page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  await report.locator("h1", { hasText: "TorchDynamo's graphs" }).waitFor({ timeout: CHECK_MS });
  assert.match(await report.locator("body").innerText(), /Mended/);
  const policy = await report.locator("meta[http-equiv='Content-Security-Policy']").first().getAttribute("content");
  assert.match(policy, /default-src 'none'/);
  assert.doesNotMatch(policy, /script-src|unsafe-inline|unsafe-eval|https?:/);
  const widths = await report.locator(".graph").evaluateAll(graphs => graphs.map(each => each.getBoundingClientRect().width));
  const [colour] = await report.locator(".graph").evaluateAll(graphs => graphs.map(each => getComputedStyle(each).backgroundColor));
  assert.notEqual(colour, "rgba(0, 0, 0, 0)"); // the policy lets the report's own style through
  assert.ok(widths.length >= 3 && widths.every(width => width > 10), widths.join());
  const scripted = await report.locator("body").evaluate(body => {
    body.insertAdjacentHTML("beforeend", "<img src=x onerror='document.title = 1'><p id=styled style='color: rgb(1, 2, 3)'>x</p>");
    return getComputedStyle(document.getElementById("styled")).color;
  });
  assert.notEqual(scripted, "rgb(1, 2, 3)"); // and no other
  await picture("report");
  log("report");
  await page.locator(".tab", { hasText: "Graphs of gate.py" }).locator(".tab-actions a").first().click();
  await line(/tanh/).click();

  await vs.command("GraphMend: Show Logs");
  await page.locator(".panel .view-line", { hasText: "gate.py: checked" }).first().waitFor();
  const channels = await page.locator(".panel select.monaco-select-box option").allInnerTexts();
  for (const name of ["GraphMend", "GraphMend Server", "GraphMend Trace"]) assert.ok(channels.includes(name), channels.join());
  log("channels:", channels.filter(name => name.startsWith("GraphMend")).join(" | "));
  await vs.command("View: Hide Panel");

  await vs.command("Welcome: Open Walkthrough...");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Mend graph breaks with GraphMend" }).click();
  for (const step of ["See where the graph breaks", "Mend it", "Let TorchDynamo confirm", "Read the report"]) {
    await page.locator(".getting-started-step", { hasText: step }).locator(".step-title").click();
    const image = page.locator(".getting-started-media img").first();
    await until(`the picture of "${step}"`, () => image.evaluate(shown => shown.complete && shown.naturalWidth > 400).catch(() => false));
  }
  log("walkthrough");
});
