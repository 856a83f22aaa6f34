function showPage(scripts) {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (reduced) root.style.scrollBehavior = "auto";
  const drawn = new Map();

  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function themed(layout) {
    const ink = color("--ink"), grid = color("--line");
    const out = {
      ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { color: ink, family: "system-ui, sans-serif", size: 13 },
      margin: { l: 60, r: 16, t: layout.title ? 64 : 34, b: 48, ...(layout.margin || {}) },
      hoverlabel: { bgcolor: color("--card"), font: { color: ink }, namelength: -1 },
    };
    if (!out.legend) out.legend = { orientation: "h", y: 1.01, yanchor: "bottom" };
    for (const key of Object.keys(out)) {
      if (/^[xy]axis\d*$/.test(key)) out[key] = { gridcolor: grid, linecolor: grid, zerolinecolor: grid, ...out[key] };
    }
    return out;
  }

  function draw(place, figure) {
    drawn.set(place, figure);
    const fresh = JSON.parse(JSON.stringify(figure));
    return Plotly.react(place, fresh.data, themed(fresh.layout || {}), { responsive: true, displaylogo: false, displayModeBar: false });
  }

  function theme(dark) {
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(dark));
    for (const [place, figure] of drawn) draw(place, figure);
  }

  function copyOf(source, button) {
    return async () => {
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        button.textContent = "Selected";
      }
    };
  }

  theme(system.matches);
  system.addEventListener("change", (event) => theme(event.matches));
  button.addEventListener("click", () => theme(root.dataset.theme !== "dark"));
  window.addEventListener("beforeprint", () => theme(false));
  for (const copy of document.querySelectorAll("[data-copy]")) {
    copy.addEventListener("click", copyOf(document.getElementById(copy.dataset.copy), copy));
  }

  for (const section of document.querySelectorAll("main > section")) {
    const figures = charts[section.id];
    for (const place of section.querySelectorAll("[data-chart]")) {
      const figure = figures[place.dataset.chart];
      if (figure) draw(place, figure);
      else console.warn(`section ${section.id} has no chart ${place.dataset.chart}`);
    }
    // The script of one section must not keep the others from being drawn.
    try {
      scripts.get(section.id)?.(section, figures, draw);
    } catch (error) {
      console.error(`the script of section ${section.id} failed`, error);
    }
  }
}
