(() => {
  "use strict";
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const reduced = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  if (reduced) root.style.scrollBehavior = "auto";
  const drawn = new Map();

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function themed(layout) {
    const ink = colour("--ink"), grid = colour("--line");
    const out = {
      ...layout, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", autosize: true,
      font: { color: ink, family: "system-ui, sans-serif", size: 13 },
      margin: { l: 60, r: 16, t: layout.title ? 64 : 34, b: 48, ...(layout.margin || {}) },
      hoverlabel: { bgcolor: colour("--card"), font: { color: ink }, namelength: -1 },
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

  theme(system.matches);
  system.addEventListener("change", (event) => theme(event.matches));
  button.addEventListener("click", () => theme(root.dataset.theme !== "dark"));
  window.addEventListener("beforeprint", () => theme(false));

  for (const place of document.querySelectorAll("[data-chart]")) {
    if (charts[place.dataset.chart]) draw(place, charts[place.dataset.chart]);
  }
  const chooser = document.getElementById("decision"), weights = document.getElementById("chart-weights");
  const choose = () => { if (charts.weights[chooser.value]) draw(weights, charts.weights[chooser.value]); };
  chooser.addEventListener("change", choose);
  choose();

  for (const copy of document.querySelectorAll("[data-copy]")) {
    copy.addEventListener("click", async () => {
      const source = document.getElementById(copy.dataset.copy);
      try {
        await navigator.clipboard.writeText(source.textContent);
        copy.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(source);
        const selection = window.getSelection();
        selection.removeAllRanges();
        selection.addRange(range);
        copy.textContent = "Selected";
      }
    });
  }
})();
