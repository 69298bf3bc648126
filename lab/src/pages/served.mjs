// Opens the pages of `fathom serve` as a reader does, on every screen, and follows a run to its end. Its argument is what to open and
// where the tools are; it writes the pages and their pictures into the directory, and one line of JSON to standard output:
// for each page its name, the numbers of its charts and of the screens it was opened on, and its faults.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";

const asked = JSON.parse(process.argv[2]);
const { chromium } = createRequire(import.meta.url)(asked.playwright);
const axe = readFileSync(asked.axe, "utf8");
const executablePath = process.env.PATH.split(delimiter).map((directory) => join(directory, asked.chromium)).find(existsSync);
const origin = `http://${asked.address}`;
const FOCUSABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']";
const PATIENCE_MS = 60_000;

class Reader {
  constructor(page, name, screen) {
    Object.assign(this, { page, name, screen, faults: [], charts: 0, expected: 200 });
    page.on("console", (message) => {
      // A page that does not exist is an error for the console of the browser as well.
      const isStatus = this.expected !== 200 && message.text().includes(`${this.expected}`);
      if (["error", "warning"].includes(message.type()) && !isStatus) this.fault(`console: ${message.text()}`);
    });
    page.on("pageerror", (error) => this.fault(`script error: ${error}`));
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) this.fault(`request: ${request.url()}`);
    });
    page.setDefaultTimeout(PATIENCE_MS);
  }

  fault(text) {
    this.faults.push(`${this.screen.width} px ${this.screen.dark ? "dark" : "light"}: ${text}`);
  }

  async open(place, expected = 200) {
    this.expected = expected;
    const response = await this.page.goto(origin + place, { waitUntil: "load" });
    if (response.status() !== expected) this.fault(`${place} is answered with ${response.status()}, not ${expected}`);
    if (!response.headers()["content-security-policy"]) this.fault(`${place} has no content security policy`);
    return response;
  }

  async look() {
    const folded = (all) => all.forEach((details) => { details.open ||= !details.closest("figure"); });
    await this.page.locator("details").evaluateAll(folded);
    const seen = await this.page.evaluate(() => {
      const root = document.documentElement, faults = [];
      const over = root.scrollWidth - root.clientWidth;
      if (over > 0) faults.push(`the page is ${over} px wider than its screen`);
      const figures = [...document.querySelectorAll("figure.chart")];
      for (const figure of figures) {
        const marks = [...figure.querySelectorAll("svg .curve, svg .dot, svg rect[class^='f'], svg path[class^='h']")];
        if (!marks.some((mark) => mark.getAttribute("d") || mark.getAttribute("width"))) faults.push(`${figure.id}: nothing is drawn`);
        if (/NaN|undefined|Infinity/.test(figure.querySelector("svg")?.outerHTML ?? "")) faults.push(`${figure.id}: a number is NaN`);
      }
      return { charts: figures.length, faults };
    });
    this.charts = Math.max(this.charts, seen.charts);
    seen.faults.forEach((text) => this.fault(text));
    await this.page.evaluate(axe);
    const found = await this.page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => `axe ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 120)}`);
    });
    found.forEach((text) => this.fault(text));
    const picture = `served-${this.name}-${this.screen.width}-${this.screen.dark ? "dark" : "light"}.png`;
    await this.page.screenshot({ path: join(asked.directory, picture), fullPage: true });
  }

  // Whatever can be used takes the focus by the tab key alone.
  async tab() {
    const count = await this.page.evaluate((selector) => {
      const shown = (element) => element.checkVisibility() && !element.disabled && element.tabIndex >= 0;
      const all = [...document.querySelectorAll(selector)].filter(shown);
      window.reached = new Set();
      document.addEventListener("focusin", (event) => window.reached.add(event.target));
      window.focusable = all;
      return all.length;
    }, FOCUSABLE);
    for (let press = 0; press <= count; press++) await this.page.keyboard.press("Tab");
    const missed = await this.page.evaluate(() =>
      window.focusable.filter((element) => !window.reached.has(element)).map((element) => element.outerHTML.slice(0, 100)));
    if (missed.length) this.fault(`${missed.length} of ${count} are not reached by the tab key: ${missed[0]}`);
  }
}

const results = new Map();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });

async function read(name, screen, use) {
  const context = await browser.newContext({
    viewport: { width: screen.width, height: 900 },
    colorScheme: screen.dark ? "dark" : "light",
  });
  const reader = new Reader(await context.newPage(), name, screen);
  try {
    await use(reader);
  } catch (error) {
    reader.fault(`${error}`.split("\n")[0]);
  }
  const result = results.get(name) ?? { name, charts: 0, screens: 0, faults: [] };
  result.charts = Math.max(result.charts, reader.charts);
  result.screens += 1;
  result.faults.push(...reader.faults);
  results.set(name, result);
  await context.close();
}

// The run that goes on is followed first, by two readers at once, to its report.
const followed = (screen) => read("follow", screen, async (reader) => {
  const { page } = reader;
  await reader.open(`/runs/${asked.running}/follow`);
  await page.getByText("Following the run.").waitFor();
  await page.locator("#live svg .curve").first().waitFor();
  const before = await page.locator("#live").innerHTML();
  await page.waitForFunction((old) => document.getElementById("live").innerHTML !== old, before);
  await reader.look();
  await page.waitForURL(`${origin}/runs/${asked.running}`);
  await page.locator("figure.chart").first().waitFor();
  if (await page.getByText("Running: follow it").count()) reader.fault("the report of the run that has ended says that it goes on");
});
await Promise.all([followed(asked.screens[0]), followed(asked.screens.at(-1))]);

for (const screen of asked.screens) {
  for (const [name, place] of Object.entries(asked.places)) {
    await read(name, screen, async (reader) => {
      const response = await reader.open(place, name === "missing" ? 404 : 200);
      writeFileSync(join(asked.directory, `served-${name}.html`), await response.text());
      await reader.look();
      if (screen === asked.screens[0]) await reader.tab();
    });
  }
}

// Two runs are selected and compared, and a run gets a tag, by the forms of the pages.
await read("use", asked.screens[0], async (reader) => {
  const { page } = reader;
  await reader.open("/");
  const boxes = page.getByRole("checkbox");
  await boxes.nth(1).check();
  await boxes.nth(2).check();
  await page.getByRole("button", { name: "Compare the selected runs" }).click();
  await page.waitForURL(/\/compare\?run=\d+&run=\d+/);
  await page.locator("table").first().waitFor();
  await reader.open("/runs/1");
  await page.getByLabel("New tag").fill("seen <b>");
  await page.getByRole("button", { name: "Add tag" }).click();
  await page.getByRole("link", { name: "seen <b>", exact: true }).waitFor();
  await reader.open("/runs/1");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "JSON", exact: true }).click()]);
  JSON.parse(readFileSync(await download.path(), "utf8"));
});

await browser.close();
console.log(JSON.stringify([...results.values()]));
