"use strict";
// Around the frame of a page: writes what its probe posts where the browser's dump of the document has it. A frame without
// scripts has no probe: it is looked at from here.
(() => {
  const tell = (result) => {
    // No character that a dump would write in another way.
    const text = JSON.stringify(result).replace(/[<>&\u00a0]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const outcome = document.createElement("pre");
    outcome.id = "outcome";
    outcome.hidden = true;
    outcome.textContent = text;
    document.body.append(outcome);
  };

  function still(page) {
    const faults = [];
    for (const details of page.querySelectorAll("details")) details.open ||= !details.closest("figure");
    const figures = [...page.querySelectorAll("figure.chart")];
    for (const figure of figures) {
      const id = figure.id, svg = figure.querySelector("svg");
      const box = svg?.getBoundingClientRect();
      if (!box || box.width < 100 || box.height < 50) faults.push(`${id}: no picture without scripts`);
      else if (svg.querySelectorAll("path, rect, polyline, polygon, line, circle").length < 3) faults.push(`${id}: an empty picture without scripts`);
      if (/NaN|undefined|Infinity/.test(svg?.outerHTML ?? "")) faults.push(`${id}: a number is NaN without scripts`);
    }
    const root = page.documentElement, over = root.scrollWidth - root.clientWidth;
    if (over > 0) faults.push(`without scripts the page is ${over} px wider than its screen`);
    return { charts: figures.length, height: root.scrollHeight, faults };
  }

  const frame = document.querySelector("iframe");
  addEventListener("message", (event) => tell(event.data));
  if (frame.hasAttribute("sandbox")) {
    frame.addEventListener("load", () => {
      if (frame.contentDocument) tell(still(frame.contentDocument));
      else tell({ charts: 0, height: 0, faults: ["the page without scripts cannot be read"] });
    });
  }
})();
