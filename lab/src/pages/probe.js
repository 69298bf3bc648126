"use strict";
// Stands before everything else in a copy of a report page, in a frame as wide as the screen to be tried. It uses the page as a
// reader does and posts to the frame's parent the number of charts, the height of the page, and the list of faults. The policy of
// the page is its own: it does not apply to what stands before it.
(() => {
  const faults = new Set();
  const fault = (text) => faults.add(text);
  const CHARTS_WITH_TABLE_FOR_AXE = 1, GRID = 16, FIRST_SCREEN = { width: 1280, height: 800 };

  // Anything that is said to the console, fetched or blocked is a fault.
  for (const level of ["error", "warn", "assert"]) console[level] = (...parts) => fault(`console ${level}: ${parts.join(" ")}`);
  window.alert = (text) => fault(`a text of the run was executed: ${text}`);
  addEventListener("error", (event) => fault(`script error: ${event.message || "something did not load"}`), true);
  addEventListener("unhandledrejection", (event) => fault(`unhandled rejection: ${event.reason}`));
  addEventListener("securitypolicyviolation", (event) => fault(`blocked by the policy: ${event.effectiveDirective} ${event.blockedURI}`));

  const soon = () => new Promise((done) => setTimeout(done, 20));
  const press = (plot, key) => plot.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
  const picture = (plot) => plot.querySelector(":scope > svg")?.innerHTML ?? "";

  function pointer(target, name, across, down) {
    const place = { clientX: across, clientY: down, button: 0, pointerType: "mouse", bubbles: true };
    target.dispatchEvent(new PointerEvent(name, place));
  }

  class ChartProbe {
    constructor(figure) {
      this.figure = figure;
      this.plot = figure.querySelector(".plot");
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.zooms = this.data.form === "steps" || this.data.form === "lines";
    }

    fault(text) {
      fault(`${this.figure.id} (${this.data.title}): ${text}`);
    }

    async use() {
      this.look();
      this.hover();
      this.keys();
      if (this.zooms) this.zoom();
      if (this.zooms) this.drag();
      this.legend();
      await this.table();
      if (/NaN|undefined|Infinity/.test(this.figure.querySelector(".plot").innerHTML)) this.fault("a number is NaN");
    }

    look() {
      const svg = this.plot.querySelector(":scope > svg");
      if (!svg) return this.fault("no picture");
      const marks = [...svg.querySelectorAll(".curve, .dot, rect[class^='f'], path[class^='h']")];
      const drawn = marks.some((mark) => mark.getAttribute("d") || mark.getAttribute("width"));
      if (!drawn) this.fault("nothing is drawn");
      if (/NaN|undefined|Infinity/.test(svg.outerHTML)) this.fault("a number is NaN");
      const screen = this.plot.getBoundingClientRect();
      const texts = [...svg.querySelectorAll("text")].map((text) => ({ text: text.textContent, box: text.getBoundingClientRect() }));
      for (const { text, box } of texts) {
        if (box.left < screen.left - 1 || box.right > screen.right + 1) this.fault(`'${text}' is cut off`);
      }
      texts.forEach((one, index) => {
        for (const other of texts.slice(index + 1)) {
          const across = Math.min(one.box.right, other.box.right) - Math.max(one.box.left, other.box.left);
          const down = Math.min(one.box.bottom, other.box.bottom) - Math.max(one.box.top, other.box.top);
          if (across > 2 && down > 4) this.fault(`'${one.text}' lies over '${other.text}'`);
        }
      });
    }

    // Cells of a map may be empty where the pointer stands: several places are tried.
    hover() {
      const tip = this.figure.querySelector(".tip"), box = this.plot.getBoundingClientRect();
      const places = [];
      for (let down = 0; down < GRID; down++) for (let across = 0; across < GRID; across++) places.push([across, down]);
      const told = places.some(([across, down]) => {
        pointer(this.plot, "pointermove", box.left + (box.width * (across + 0.5)) / GRID, box.top + (box.height * (down + 0.5)) / GRID);
        return !tip.hidden && tip.textContent.trim() !== "";
      });
      if (!told) return this.fault("hover shows no tip");
      const shown = tip.getBoundingClientRect();
      if (shown.left < -1 || shown.right > document.documentElement.clientWidth + 1) this.fault("the tip is cut off");
      this.plot.dispatchEvent(new PointerEvent("pointerleave"));
      if (!tip.hidden) this.fault("the tip stays");
    }

    keys() {
      const readout = this.figure.querySelector(".readout");
      this.plot.focus();
      if (document.activeElement !== this.plot) return this.fault("takes no focus");
      press(this.plot, "Home");
      const first = readout.textContent;
      if (!first) return this.fault("Home reads no value");
      press(this.plot, "ArrowRight");
      const second = readout.textContent;
      if (this.values() > 1 && second === first) this.fault("the right arrow reads no other value");
      press(this.plot, "ArrowLeft");
      if (readout.textContent !== first) this.fault("the left arrow does not go back");
      press(this.plot, "End");
      if (/NaN|undefined|Infinity/.test(readout.textContent)) this.fault("reads a number that is NaN");
      this.plot.blur();
    }

    // Places along the axis that have a value.
    values() {
      if (this.data.form === "heat") return this.data.columns.length;
      if (this.data.form === "bars") return this.data.x.names.length;
      return new Set(this.data.series.flatMap(({ points }) => points.map(([from, to]) => (from + to) / 2))).size;
    }

    zoom() {
      const whole = picture(this.plot);
      press(this.plot, "+");
      if (picture(this.plot) === whole) this.fault("plus does not zoom");
      this.look();
      press(this.plot, "0");
      if (picture(this.plot) !== whole) this.fault("0 does not show the whole again");
      for (const button of this.figure.querySelectorAll(".controls button")) {
        if (button.textContent === "+") button.click();
      }
      if (picture(this.plot) === whole) this.fault("the button does not zoom");
      press(this.plot, "Escape");
    }

    drag() {
      const whole = picture(this.plot), box = this.plot.getBoundingClientRect(), down = box.top + box.height / 2;
      pointer(this.plot, "pointerdown", box.left + box.width * 0.5, down);
      pointer(this.plot, "pointermove", box.left + box.width * 0.7, down);
      pointer(window, "pointerup", box.left + box.width * 0.7, down);
      this.plot.dispatchEvent(new PointerEvent("pointerleave"));
      if (picture(this.plot) === whole) this.fault("dragging does not zoom");
      this.plot.dispatchEvent(new MouseEvent("dblclick", { bubbles: true }));
      if (picture(this.plot) !== whole) this.fault("a double click does not show the whole again");
    }

    legend() {
      const button = this.figure.querySelector(".legend button");
      if (!button) return;
      const whole = picture(this.plot);
      button.click();
      if (picture(this.plot) === whole) this.fault("the legend hides no series");
      button.click();
      if (picture(this.plot) !== whole) this.fault("the legend does not show the series again");
    }

    async table() {
      const details = this.figure.querySelector("details");
      details.open = true;
      await soon();
      const cells = [...details.querySelectorAll("td, tbody th")];
      if (!cells.length) this.fault("the table has no values");
      if (cells.some((cell) => /NaN|undefined|Infinity/.test(cell.textContent))) this.fault("a number of the table is NaN");
      const box = details.getBoundingClientRect();
      if (box.right > document.documentElement.clientWidth + 1) this.fault("the table is wider than the page");
      details.open = false;
    }
  }

  // Names of others are text: no element of theirs, and where one is to be seen it is whole.
  function names() {
    const foreign = document.querySelectorAll("img, iframe, object, embed, link, base, form, [onerror], [onload], [onclick]");
    for (const element of foreign) fault(`an element of a name: ${element.outerHTML.slice(0, 80)}`);
    const scripts = [...document.scripts].filter((script) => script.type !== "application/json" && !("probe" in script.dataset));
    if (scripts.length !== 1) fault(`${scripts.length} scripts, not 1`);
    const told = document.body.innerText.replace(/\s+/g, " ");
    if (window.probed.text && !told.includes(window.probed.text)) fault(`'${window.probed.text}' is not shown as text`);
  }

  function theme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    if (dark !== window.probed.dark) return fault(`the screen is ${dark ? "dark" : "light"}`);
    const ground = () => getComputedStyle(document.body).backgroundColor;
    const before = ground(), button = document.getElementById("theme");
    button.click();
    if (ground() === before) fault("the button does not change between dark and light");
    button.click();
    if (ground() !== before) fault("the button does not change back");
  }

  function overflow() {
    const root = document.documentElement, over = root.scrollWidth - root.clientWidth;
    if (over > 0) fault(`the page is ${over} px wider than its screen of ${root.clientWidth} px`);
  }

  // What a reader sees without scrolling is whole.
  function first() {
    const parts = [...document.querySelectorAll(".verdict, .first, .uses")];
    if (!parts.length || innerWidth !== FIRST_SCREEN.width) return;
    const end = Math.max(...parts.map((part) => part.getBoundingClientRect().bottom));
    if (end > FIRST_SCREEN.height) fault(`the first screen ends at ${Math.round(end)} px, not ${FIRST_SCREEN.height}`);
  }

  async function unfold() {
    for (const details of document.querySelectorAll("details")) details.open ||= !details.closest("figure");
    await soon();
  }

  async function accessible() {
    const tables = [...document.querySelectorAll("figure details")].slice(0, CHARTS_WITH_TABLE_FOR_AXE);
    for (const details of tables) details.open = true;
    await soon();
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    for (const { id, nodes } of violations) {
      const reason = nodes[0].any[0]?.message ?? nodes[0].failureSummary ?? "";
      fault(`axe ${id}, ${nodes.length} times: ${nodes[0].html.slice(0, 120)}: ${reason}`);
    }
    for (const details of tables) details.open = false;
  }

  async function probe() {
    const root = document.documentElement;
    if (innerWidth !== window.probed.width) fault(`the screen is ${innerWidth} px wide`);
    const figures = [...document.querySelectorAll("figure.chart")];
    if (!figures.length) fault("no chart");
    overflow();
    names();
    theme();
    first();
    await accessible();
    await unfold();
    const height = root.scrollHeight;
    for (const figure of figures) await new ChartProbe(figure).use();
    overflow();
    await accessible();
    for (const { name } of performance.getEntriesByType("resource")) fault(`request: ${name}`);
    return { charts: figures.length, height };
  }

  addEventListener("load", () => {
    const post = (result) => parent.postMessage({ ...result, faults: [...faults] }, "*");
    probe().then(post, (error) => {
      fault(`the probe failed: ${error} ${error.stack}`);
      post({ charts: 0, height: 0 });
    });
  });
})();
