"use strict";
// Draws each chart of the page from the data beside it: hover, zoom, keyboard, table and download. Every text that a reader sees
// of a value comes with the data, so that it is the same as in all other reports.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const CHARACTER = 6.7, LINE = 16, MOST_MARKERS = 40;

  const element = (name, attributes = {}, text = "", space = "") => {
    const made = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== "") made.textContent = text;
    return made;
  };
  const shape = (parent, name, attributes, text = "") => parent.appendChild(element(name, attributes, text, SVG));
  const round = (value) => Math.round(value * 10) / 10;
  const longest = (texts) => texts.reduce((most, text) => Math.max(most, text.length), 0);
  const clamp = (value, least, most) => Math.min(Math.max(value, least), most);
  const dashes = (place) => ["", " d1", " d2", " d3"][(place + Math.floor(place / 8)) % 4];

  // The share of an axis that lies before a value.
  const share = (axis, value) => {
    const [from, to] = [axis.from, axis.to];
    if (!axis.log) return to > from ? (value - from) / (to - from) : 0;
    return Math.log(Math.max(value, Number.MIN_VALUE) / from) / Math.log(to / from);
  };

  class Chart {
    constructor(figure) {
      this.figure = figure;
      this.data = JSON.parse(figure.querySelector("script").textContent);
      this.plot = figure.querySelector(".plot");
      this.readout = figure.querySelector(".readout");
      this.hidden = new Set();
      this.window = [0, 1];
      this.cursor = -1;
      this.tip = this.plot.appendChild(element("div", { class: "tip", hidden: "" }));
      this.zooms = this.data.form === "steps" || this.data.form === "lines";
      this.makeLegend();
      this.makeControls();
      this.listen();
      this.draw();
    }

    // Legend and controls.

    makeLegend() {
      const named = this.data.series.map((series) => series.name);
      const legend = this.figure.querySelector(".legend");
      if (!named.some((name) => name !== "")) return legend.remove();
      named.forEach((name, place) => {
        const button = element("button", { type: "button", "aria-pressed": "true" });
        const swatch = button.appendChild(element("svg", { viewBox: "0 0 26 12", "aria-hidden": "true" }, "", SVG));
        if (this.data.form === "bars") shape(swatch, "rect", { x: 4, y: 1, width: 18, height: 10, class: `f${place % 8}` });
        else shape(swatch, "path", { d: "M0 6H26", class: `curve c${place % 8}${this.data.form === "steps" ? "" : dashes(place)}` });
        button.append(name);
        button.addEventListener("click", () => {
          const shows = this.hidden.delete(place) || !this.hidden.add(place);
          button.setAttribute("aria-pressed", String(shows));
          this.draw();
        });
        legend.append(button);
      });
    }

    makeControls() {
      const controls = this.figure.querySelector(".controls");
      const add = (text, label, act) => {
        const button = element("button", { type: "button", "aria-label": `${label}: ${this.data.title}` }, text);
        button.addEventListener("click", act);
        controls.append(button);
      };
      if (this.zooms) {
        add("+", "Zoom in", () => this.zoom(0.5));
        add("−", "Zoom out", () => this.zoom(2));
        add("Reset", "Reset", () => this.show([0, 1]));
      }
      add("CSV", "CSV", () => this.download());
      const details = this.figure.querySelector("details");
      details.addEventListener("toggle", () => {
        const place = details.querySelector("div");
        if (details.open && !place.firstChild) place.append(this.table());
      });
    }

    listen() {
      const plot = this.plot;
      let begun = null;
      const at = (event) => event.clientX - plot.getBoundingClientRect().left;
      plot.addEventListener("pointermove", (event) => {
        if (begun !== null) this.choose(begun, at(event));
        const box = plot.getBoundingClientRect();
        this.point(event.clientX - box.left, event.clientY - box.top);
      });
      plot.addEventListener("pointerleave", () => this.leave());
      plot.addEventListener("pointerdown", (event) => {
        if (this.zooms && event.button === 0 && event.pointerType !== "touch") begun = at(event);
      });
      window.addEventListener("pointerup", (event) => {
        if (begun === null) return;
        const [from, to] = [begun, at(event)].sort((one, other) => one - other);
        begun = null;
        if (to - from < 6) return this.choose(0, 0);
        this.show([this.unplace(from), this.unplace(to)]);
      });
      plot.addEventListener("dblclick", () => this.show([0, 1]));
      plot.addEventListener("keydown", (event) => this.key(event));
      plot.addEventListener("blur", () => this.leave());
      // Newer values of the same series.
      this.figure.addEventListener("data", (event) => {
        this.data = JSON.parse(event.detail);
        const values = this.figure.querySelector("details div");
        if (values.firstChild) values.replaceChildren(this.table());
        this.draw();
      });
      let width = plot.clientWidth;
      new ResizeObserver(() => {
        if (plot.clientWidth === width) return;
        width = plot.clientWidth;
        this.draw();
      }).observe(plot);
    }

    key(event) {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      const [from, to] = this.window;
      if (step && event.shiftKey && this.zooms) {
        const by = clamp(step * (to - from) / 4, -from, 1 - to);
        this.show([from + by, to + by]);
      } else if (step) {
        this.move(step);
      } else if (event.key === "Home" || event.key === "End") {
        this.cursor = event.key === "Home" ? -1 : this.stops().length;
        this.move(event.key === "Home" ? 1 : -1);
      } else if (this.zooms && (event.key === "+" || event.key === "=")) {
        this.zoom(0.5);
      } else if (this.zooms && event.key === "-") {
        this.zoom(2);
      } else if (this.zooms && (event.key === "0" || event.key === "Escape")) {
        this.show([0, 1]);
      } else {
        return;
      }
      event.preventDefault();
    }

    // Window and places.

    zoom(factor) {
      const [from, to] = this.window;
      const middle = this.cursorShare() ?? (from + to) / 2;
      const half = clamp((to - from) * factor, 1e-6, 1) / 2;
      const start = clamp(middle - half, 0, 1 - 2 * half);
      this.show([start, start + 2 * half]);
    }

    show(shown) {
      this.window = [clamp(shown[0], 0, 1), clamp(shown[1], 0, 1)];
      if (this.window[1] - this.window[0] < 1e-9) this.window = [0, 1];
      this.draw();
      const [first, ...rest] = this.stops();
      if (first) this.readout.textContent = `Shown: ${first.text} to ${(rest.pop() ?? first).text}`;
    }

    across(value) {
      const [from, to] = this.window;
      return this.left + ((share(this.data.x, value) - from) / (to - from)) * (this.right - this.left);
    }

    up(value) {
      return this.bottom - clamp(share(this.data.y, value), 0, 1) * (this.bottom - this.top);
    }

    unplace(pixel) {
      const [from, to] = this.window;
      return from + clamp((pixel - this.left) / (this.right - this.left), 0, 1) * (to - from);
    }

    cursorShare() {
      const stop = this.stops()[this.cursor];
      return stop ? share(this.data.x, stop.x) : null;
    }

    shown() {
      return this.data.series.map((series, place) => ({ series, place })).filter(({ place }) => !this.hidden.has(place));
    }

    // Places along the horizontal axis that have a value, within the window.
    stops() {
      if (this.known) return this.known;
      const stops = new Map();
      if (this.data.form === "heat") {
        this.data.columns.forEach((text, x) => stops.set(x, { x, text }));
      } else if (this.data.form === "bars") {
        this.data.x.names.forEach((text, x) => stops.set(x, { x, text }));
      } else {
        for (const { series } of this.shown()) {
          for (const [from, to, , , text] of series.points) {
            const x = (from + to) / 2, at = share(this.data.x, x);
            if (at >= this.window[0] - 1e-12 && at <= this.window[1] + 1e-12 && !stops.has(x)) stops.set(x, { x, text });
          }
        }
      }
      this.known = [...stops.values()].sort((one, other) => one.x - other.x);
      return this.known;
    }

    // Drawing.

    draw() {
      this.known = null;
      this.cursor = Math.min(this.cursor, this.stops().length - 1);
      this.plot.querySelector("svg")?.remove();
      const width = Math.max(this.plot.clientWidth, 240);
      this.svg = element("svg", { "aria-hidden": "true" }, "", SVG);
      this.plot.prepend(this.svg);
      if (this.data.form === "bars") this.drawBars(width);
      else if (this.data.form === "heat") this.drawHeat(width);
      else this.drawCurves(width);
    }

    size(width, height) {
      this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      this.svg.setAttribute("height", height);
      this.height = height;
    }

    text(x, y, anchor, text, name = "") {
      return shape(this.svg, "text", { x: round(x), y: round(y), "text-anchor": anchor, class: name }, text);
    }

    drawCurves(width) {
      const { x, y, limits, marks, form } = this.data;
      const isStory = this.figure.parentElement.className === "story";
      const height = isStory ? clamp(width * 0.33, 200, 300) : clamp(width * 0.42, 220, 420);
      this.size(width, height);
      const label = y.label ? LINE : 0;
      this.left = longest(y.ticks.map((tick) => tick[1])) * CHARACTER + 10 + label;
      [this.right, this.top, this.bottom] = [width - 12, 10, height - (x.label ? 38 : 24)];
      for (const [value, text] of y.ticks) {
        const at = round(this.up(value));
        shape(this.svg, "path", { d: `M${this.left} ${at}H${this.right}`, class: "grid" });
        this.text(this.left - 6, at + 4, "end", text);
      }
      if (y.label) {
        const middle = (this.top + this.bottom) / 2;
        const turned = `translate(11 ${round(middle)}) rotate(-90)`;
        const text = y.label + (y.log ? " (logarithmic)" : "");
        shape(this.svg, "text", { transform: turned, "text-anchor": "middle" }, text);
      }
      this.drawTicks();
      if (x.label) this.text((this.left + this.right) / 2, height - 6, "middle", x.label);
      const id = `field-${this.figure.id}`;
      const clip = shape(shape(this.svg, "defs", {}), "clipPath", { id });
      const box = { x: this.left, y: this.top - 4, width: this.right - this.left, height: this.bottom - this.top + 8 };
      shape(clip, "rect", box);
      const field = shape(this.svg, "g", { "clip-path": `url(#${id})` });
      const words = [];
      for (const mark of marks) {
        const [from, to] = [this.across(mark.from), this.across(mark.to)];
        const wide = Math.max(to - from, 2);
        const area = { x: round(from), y: this.top, width: round(wide), height: this.bottom - this.top, class: "mark" };
        shape(field, "rect", area);
        // One word for neighbours that would lie over each other, in the middle of what is to be seen of the stretch.
        const [first, last] = [Math.max(from, this.left), Math.min(from + wide, this.right)];
        const half = (mark.reason.length * CHARACTER) / 2;
        if (last < first) continue;
        const middle = clamp((first + last) / 2, this.left + half + 4, Math.max(this.right - half, this.left + half + 4));
        if (words.some((other) => Math.abs(other - middle) < 2 * half)) continue;
        words.push(middle);
        shape(field, "text", { x: round(middle), y: this.top + 10, "text-anchor": "middle" }, mark.reason);
      }
      const names = [];
      for (const limit of limits) {
        const at = round(this.up(limit.y));
        shape(field, "path", { d: `M${this.left} ${at}H${this.right}`, class: `limit c${limit.series % 8}` });
        // Names of limits that are nearly the same stand under each other.
        let under = at - 4;
        while (names.some((other) => Math.abs(other - under) < LINE)) under += LINE;
        names.push(under);
        this.text(this.right, under, "end", limit.name);
      }
      for (const { series, place } of this.shown()) {
        const steps = form === "steps";
        let path = "", dots = "", last = null;
        for (const [from, to, value] of series.points) {
          const [start, end, at] = [round(this.across(from)), round(this.across(to)), round(this.up(value))];
          const joined = last !== null && (!steps || (to > from && from - last <= (to - from) * 0.51));
          if (steps && to <= from) {
            dots += `M${start} ${at}h0`;
            last = null;
            continue;
          }
          if (steps) path += `${joined ? `L${start} ${at}` : `M${start} ${at}`}H${end}`;
          else path += `${joined ? "L" : "M"}${start} ${at}`;
          if (!steps && series.points.length <= MOST_MARKERS) dots += `M${start} ${at}h0`;
          last = to;
        }
        const [first, final] = [series.points[0], series.points.at(-1)];
        if (isStory && series.points.length > 1 && this.shown().length === 1) {
          const area = `${path}L${round(this.across(final[1]))} ${this.bottom}H${round(this.across(first[0]))}Z`;
          shape(field, "path", { d: area, class: "band" });
        }
        shape(field, "path", { d: path, class: `curve c${place % 8}${steps ? "" : dashes(place)}` });
        shape(field, "path", { d: dots, class: `dot c${place % 8}` });
      }
      this.line = shape(this.svg, "path", { class: "cursor", d: "" });
      this.area = shape(this.svg, "rect", { class: "chosen", x: 0, y: this.top, width: 0, height: this.bottom - this.top });
      this.drawCursor();
    }

    // Of all of an axis its own ticks; of a part of it the places of values.
    drawTicks() {
      const { x } = this.data;
      shape(this.svg, "path", { d: `M${this.left} ${this.bottom}H${this.right}`, class: "axis" });
      const whole = this.window[0] === 0 && this.window[1] === 1;
      const all = whole ? x.ticks : this.stops().map((stop) => [stop.x, stop.text]);
      const room = (longest(all.map((tick) => tick[1])) + 2) * CHARACTER;
      let free = -Infinity;
      for (const [value, text] of all) {
        const at = round(this.across(value));
        const anchor = at + room / 2 > this.right ? "end" : "middle";
        if (at - (anchor === "end" ? room : room / 2) < free || at > this.right + 1 || at < this.left - 1) continue;
        shape(this.svg, "path", { d: `M${at} ${this.bottom}v4`, class: "axis" });
        this.text(at, this.bottom + 17, anchor, text);
        free = at + (anchor === "end" ? 0 : room / 2);
      }
    }

    drawBars(width) {
      const { x, y, marks } = this.data;
      const bar = 17, gap = 12;
      const shown = this.shown();
      const groups = x.names.map((name, group) => {
        const bars = shown.flatMap(({ series, place }) => {
          const point = series.points.find((point) => point[0] === group);
          const mark = marks.find((mark) => mark.series === place && mark.from === group);
          return point || mark ? [{ place, point, text: point ? point[3] : mark.reason }] : [];
        });
        return { name, bars };
      });
      const count = groups.reduce((sum, group) => sum + group.bars.length, 0);
      const narrow = width < 480;
      const height = count * bar + groups.length * (gap + (narrow ? LINE : 0)) + 46;
      this.size(width, height);
      const names = narrow ? 0 : longest(x.names) * CHARACTER + 14;
      const values = longest(groups.flatMap((group) => group.bars.map((bar) => bar.text))) * CHARACTER + 10;
      [this.left, this.right, this.top, this.bottom] = [Math.min(names, width / 2) + 2, width - values, 6, height - 38];
      const along = (value) => this.left + clamp(share(y, value), 0, 1) * Math.max(this.right - this.left, 40);
      let free = -Infinity;
      for (const [value, text] of y.ticks) {
        const at = round(along(value)), half = (text.length * CHARACTER) / 2;
        shape(this.svg, "path", { d: `M${at} ${this.top}V${this.bottom}`, class: "grid" });
        if (at - half < free) continue;
        const starts = at - half < 0;
        this.text(at, this.bottom + 15, starts ? "start" : "middle", text);
        free = at + (starts ? 2 * half : half) + CHARACTER;
      }
      const label = y.label + (y.log ? " (logarithmic)" : "");
      this.text((this.left + this.right) / 2, height - 5, "middle", label);
      let at = this.top + gap / 2;
      this.rows = [];
      for (const { name, bars } of groups) {
        if (narrow) this.text(0, (at += LINE) - 4, "start", name, "name");
        const start = at;
        for (const { place, point, text } of bars) {
          let end = this.left;
          if (point) {
            end = along(point[2]);
            const area = { x: this.left, y: at + 1, width: Math.max(round(end - this.left), 1), height: bar - 3 };
            shape(this.svg, "rect", { ...area, class: `f${place % 8}` });
          }
          if (point && point[5] !== undefined) {
            const [low, high, y] = [round(along(point[5])), round(along(point[6])), at + bar / 2];
            shape(this.svg, "path", { d: `M${low} ${y}H${high}M${low} ${y - 4}v8M${high} ${y - 4}v8`, class: "interval" });
            end = Math.max(end, high);
          }
          this.text(end + 6, at + bar - 5, "start", text);
          at += bar;
        }
        if (!narrow) this.text(this.left - 8, (start + at) / 2 + 4, "end", name, "name");
        this.rows.push([start, at]);
        at += gap;
      }
    }

    drawHeat(width) {
      const { x, y, columns, rows, across, down, cells, most } = this.data;
      const height = Math.max(rows.length * 9 + 44, 150);
      this.size(width, height);
      this.left = longest(down.map((tick) => tick[1])) * CHARACTER + 12 + LINE;
      [this.right, this.top, this.bottom] = [width - 6, 6, height - 38];
      const wide = (this.right - this.left) / columns.length, high = (this.bottom - this.top) / rows.length;
      this.cell = { wide, high };
      const paths = Array.from({ length: 9 }, () => "");
      for (const [column, row, value] of cells) {
        // Equal steps of the logarithm: one slow request in thousands is to be seen.
        const level = value > 0 ? clamp(Math.ceil((8 * Math.log1p(value)) / Math.log1p(most)), 1, 8) : 0;
        const place = `M${round(this.left + column * wide)} ${round(this.top + row * high)}`;
        paths[level] += `${place}h${round(wide + 0.05)}v${round(high + 0.05)}h${round(-wide - 0.05)}z`;
      }
      paths.forEach((d, level) => level && d && shape(this.svg, "path", { d, class: `h${level}` }));
      shape(this.svg, "path", { d: `M${this.left} ${this.top}V${this.bottom}H${this.right}`, class: "axis", fill: "none" });
      let free = Infinity;
      for (const [place, text] of [...down].reverse()) {
        const at = this.top + place * high;
        if (at > free) continue;
        shape(this.svg, "path", { d: `M${this.left - 4} ${round(at)}H${this.left}`, class: "axis" });
        this.text(this.left - 7, at + 4, "end", text);
        free = at - LINE;
      }
      const turned = `translate(11 ${round((this.top + this.bottom) / 2)}) rotate(-90)`;
      shape(this.svg, "text", { transform: turned, "text-anchor": "middle" }, y);
      const room = (longest(across.map((tick) => tick[1])) + 1) * CHARACTER;
      free = -Infinity;
      for (const [place, text] of across) {
        const at = this.left + place * wide;
        if (at - room / 2 < free || at + (text.length * CHARACTER) / 2 > width) continue;
        shape(this.svg, "path", { d: `M${round(at)} ${this.bottom}v4`, class: "axis" });
        this.text(at, this.bottom + 17, "middle", text);
        free = at + room / 2;
      }
      this.text((this.left + this.right) / 2, height - 5, "middle", x);
    }

    // Cursor and selection.

    drawCursor() {
      const stop = this.stops()[this.cursor];
      if (!this.line) return;
      const at = stop ? round(this.across(stop.x)) : 0;
      this.line.setAttribute("d", stop ? `M${at} ${this.top}V${this.bottom}` : "");
    }

    choose(from, to) {
      if (!this.area) return;
      const [low, high] = [from, to].sort((one, other) => one - other).map((at) => clamp(at, this.left, this.right));
      this.area.setAttribute("x", low);
      this.area.setAttribute("width", from === to ? 0 : high - low);
    }

    move(step) {
      const stops = this.stops();
      if (!stops.length) return;
      this.cursor = clamp(this.cursor + step, 0, stops.length - 1);
      const lines = this.at(stops[this.cursor]);
      this.drawCursor();
      this.tell(lines, this.data.form === "bars" || this.data.form === "heat" ? this.left : this.across(stops[this.cursor].x), 8);
      this.readout.textContent = lines.join(", ");
    }

    leave() {
      this.cursor = -1;
      this.drawCursor();
      this.tip.hidden = true;
    }

    // What lies at a place of the horizontal axis: its text, then each series.
    at(stop) {
      const { form, x, columns, rows, cells, unit } = this.data;
      if (form === "heat") {
        const inside = cells.filter(([column, , value]) => column === stop.x && value > 0);
        return [columns[stop.x], ...inside.map(([, row, value]) => `${rows[row]}: ${value} ${unit}`)];
      }
      const lines = [x.label && form !== "bars" ? `${x.label} ${stop.text}` : stop.text];
      for (const { series } of this.shown()) {
        const covers = ([from, to]) => from <= stop.x && stop.x <= to;
        const point = series.points.find(covers);
        if (point) lines.push(`${series.name ? `${series.name}: ` : ""}${point[3]}`);
      }
      const mark = form === "bars" ? null : this.data.marks.find((mark) => mark.from <= stop.x && stop.x <= mark.to);
      return mark ? [...lines, mark.reason] : lines;
    }

    point(across, down) {
      const { form, columns, rows, cells, unit } = this.data;
      if (form === "heat") {
        const column = Math.floor((across - this.left) / this.cell.wide);
        const row = Math.floor((down - this.top) / this.cell.high);
        const inside = cells.find((cell) => cell[0] === column && cell[1] === row);
        if (!inside) return void (this.tip.hidden = true);
        return this.tell([`${columns[column]}, ${rows[row]}`, `${inside[2]} ${unit}`], across, down);
      }
      if (form === "bars") {
        const group = this.rows.findIndex(([from, to]) => down >= from && down <= to);
        if (group < 0) return void (this.tip.hidden = true);
        return this.tell(this.at(this.stops()[group]), across, down);
      }
      const stops = this.stops();
      let [low, high] = [0, stops.length - 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.across(stops[middle].x) < across) low = middle + 1;
        else high = middle;
      }
      const before = stops[low - 1];
      const nearer = before && across - this.across(before.x) < this.across(stops[low].x) - across;
      this.cursor = nearer ? low - 1 : low;
      this.drawCursor();
      const stop = stops[this.cursor];
      if (stop) this.tell(this.at(stop), this.across(stop.x), down);
    }

    tell(lines, across, down) {
      const MOST = 14;
      const few = lines.length > MOST ? [...lines.slice(0, MOST), `and ${lines.length - MOST} more`] : lines;
      this.tip.replaceChildren(...few.map((line, index) => element("p", { class: index ? "" : "at" }, line)));
      this.tip.hidden = false;
      const wide = this.tip.offsetWidth, room = this.plot.clientWidth;
      const left = across + 14 + wide > room ? across - 14 - wide : across + 14;
      this.tip.style.left = `${clamp(left, 0, Math.max(room - wide, 0))}px`;
      this.tip.style.top = `${clamp(down - 10, 0, Math.max(this.height - this.tip.offsetHeight, 0))}px`;
    }

    // The values as a table and as CSV, from one list of rows.

    values(raw) {
      const { form, x, y, series, columns, rows, cells, unit } = this.data;
      if (form === "heat") {
        const body = cells.map(([column, row, value]) => [columns[column], rows[row], value]);
        return { heads: [x, y, unit], body };
      }
      const names = series.map(({ name }) => name || y.label || this.data.title);
      if (form === "bars") {
        const body = x.names.map((name, group) => [name, ...series.map(({ points }) => {
          const point = points.find((point) => point[0] === group);
          return point ? point[raw ? 2 : 3] : "";
        })]);
        return { heads: [x.label || "name", ...names], body };
      }
      const spans = new Map();
      series.forEach(({ points }, place) => {
        for (const point of points) {
          const key = `${point[0]}/${point[1]}`;
          if (!spans.has(key)) spans.set(key, { at: point, cells: series.map(() => "") });
          spans.get(key).cells[place] = point[raw ? 2 : 3];
        }
      });
      const sorted = [...spans.values()].sort((one, other) => one.at[0] - other.at[0] || one.at[1] - other.at[1]);
      const head = x.label || "at";
      if (!raw) return { heads: [head, ...names], body: sorted.map(({ at, cells }) => [at[4], ...cells]) };
      return { heads: [`${head} from`, `${head} to`, ...names], body: sorted.map(({ at, cells }) => [at[0], at[1], ...cells]) };
    }

    table() {
      const { heads, body } = this.values(false);
      const table = element("table");
      table.append(element("caption", {}, this.data.title));
      const head = table.appendChild(element("thead")).appendChild(element("tr"));
      for (const text of heads) head.append(element("th", { scope: "col" }, text));
      const rows = table.appendChild(element("tbody"));
      for (const cells of body) {
        const row = rows.appendChild(element("tr"));
        cells.forEach((cell, place) => row.append(element(place ? "td" : "th", place ? {} : { scope: "row" }, String(cell))));
      }
      return table;
    }

    download() {
      const { heads, body } = this.values(true);
      // A cell that a spreadsheet would compute begins with an apostrophe.
      const inert = (text) => (/^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text);
      const quoted = (cell) => `"${inert(String(cell)).replaceAll('"', '""')}"`;
      const text = [heads, ...body].map((row) => row.map(quoted).join(",")).join("\r\n");
      const link = element("a", { download: `${this.data.title.replace(/[^\p{L}\p{N}]+/gu, "-")}.csv` });
      link.href = URL.createObjectURL(new Blob([text, "\r\n"], { type: "text/csv" }));
      link.click();
      URL.revokeObjectURL(link.href);
    }
  }

  const themed = document.getElementById("theme");
  themed.hidden = false;
  themed.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  for (const button of document.querySelectorAll(".copy button")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const text = button.closest(".copy").nextElementSibling.textContent;
      navigator.clipboard?.writeText(text).then(() => { button.textContent = "Copied"; });
    });
  }
  const charts = [];
  // Charts that are seen and not drawn yet; a page that gets further ones says so.
  const drawAll = () => {
    for (const figure of document.querySelectorAll("figure.chart:not([data-drawn])")) {
      if (!figure.checkVisibility()) continue;
      figure.dataset.drawn = "";
      charts.push(new Chart(figure));
    }
  };
  document.addEventListener("charts", drawAll);
  document.addEventListener("toggle", drawAll, true);
  drawAll();
  // Paper folds nothing but the values of charts, and has another width.
  const folded = [...document.querySelectorAll("details")].filter((details) => !details.closest("figure"));
  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = folded.filter((details) => !details.open);
    unfolded.forEach((details) => (details.open = true));
    drawAll();
    charts.forEach((chart) => chart.draw());
  });
  addEventListener("afterprint", () => {
    unfolded.forEach((details) => (details.open = false));
    charts.forEach((chart) => chart.draw());
  });
})();
