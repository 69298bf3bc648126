"use strict";
// Follows a run: puts each view that the server sends in the place of the one before. Charts stay, and get newer values.
(() => {
  const place = document.getElementById("live"), state = document.getElementById("state");
  const say = (text) => { if (state.textContent !== text) state.textContent = text; };

  // Sections and charts with their series: where they are the same, charts stay.
  const names = (figure) => JSON.parse(figure.querySelector("script").textContent).series.map((series) => series.name);
  const parts = (root) => JSON.stringify([
    [...root.querySelectorAll("section")].map((section) => section.querySelector("h2")?.textContent),
    [...root.querySelectorAll("figure")].map((figure) => [figure.id, names(figure)]),
  ]);

  const show = (view) => {
    if (parts(view) !== parts(place)) {
      place.replaceChildren(...view.childNodes);
      document.dispatchEvent(new Event("charts"));
      return;
    }
    for (const section of [...view.querySelectorAll("section")]) {
      const shown = document.getElementById(section.id);
      const figures = section.querySelectorAll("figure");
      for (const figure of figures) {
        const detail = figure.querySelector("script").textContent;
        document.getElementById(figure.id).dispatchEvent(new CustomEvent("data", { detail }));
      }
      if (!figures.length && shown.innerHTML !== section.innerHTML) shown.replaceWith(section);
    }
  };

  const source = new EventSource(place.dataset.events);
  source.addEventListener("view", (event) => {
    say("Following the run.");
    show(new DOMParser().parseFromString(event.data, "text/html").body);
  });
  source.addEventListener("end", (event) => {
    source.close();
    say("The run has ended.");
    location.replace(event.data);
  });
  source.addEventListener("error", () => {
    say(source.readyState === EventSource.CLOSED ? "The server does not answer. Reload the page." : "Connecting again.");
  });
})();
