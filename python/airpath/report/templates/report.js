// Draws the figures in the reader's colours, and lets those over time share their axis.
(() => {
  "use strict";
  const shared = JSON.parse(document.getElementById("shared").textContent);
  const figures = [...document.querySelectorAll("figure.figure")].map((element) => ({
    element,
    plot: element.querySelector(".plot"),
    text: element.querySelector("script").textContent,
    time: element.dataset.time, // what its axis is the time of; nothing if that is not one of time
    log: element.querySelector("[data-log]"),
    height: parseFloat(element.querySelector(".plot").style.height),
  }));
  const beside = (figure) => figures.filter((other) => figure.time !== undefined && other.time === figure.time);
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  // Figures are stored in light colours; each has its dark counterpart.
  const isDark = () => {
    const chosen = document.documentElement.dataset.theme;
    return !printing && (chosen ? chosen === "dark" : prefersDark.matches);
  };
  const painted = (text) =>
    JSON.parse(isDark() ? text.replace(/#[0-9a-f]{6}/g, (colour) => shared.dark[colour] ?? colour) : text);

  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    showSendToCloud: false,
    plotlyServerURL: "",
    doubleClick: "reset",
  };

  // A4 less its margins (`@page`), in CSS pixels: the page is laid out after the figures are drawn.
  const PAPER = Math.floor((210 - 2 * 14) / 25.4 * 96);

  // Long names at the left would take half of a telephone's width.
  const NARROW = 100;
  function narrow(layout) {
    layout.margin.l = NARROW;
    for (const axis of Object.keys(layout).filter((key) => key.startsWith("yaxis"))) {
      layout[axis].ticktext = layout[axis].ticktext?.map((name) =>
        name.length > 15 ? `${name.slice(0, 6)}…${name.slice(-8)}` : name);
    }
  }

  const RIGHT = 10;
  // Of a label at the right of a bar, a narrow figure has the time only: bytes are in its table.
  const brief = (label) => ` ${label.split(", ").at(-1).trim()}`;
  const isLabels = (trace) => trace.mode === "text" && trace.textposition === "middle right";
  const isNarrow = (figure) => !printing && figure.plot.clientWidth < 640;

  // The whole axis of a figure over time: in a narrow one it ends where the labels have room.
  const LETTER = 6; // pixels of a letter of 10 pixels
  function wholeRange(figure) {
    const [start, end] = JSON.parse(figure.text).layout.xaxis.range;
    if (!isNarrow(figure)) return [start, end];
    const ends = beside(figure).flatMap((other) => {
      const { data, layout } = JSON.parse(other.text);
      const width = other.plot.clientWidth - Math.min(layout.margin.l, NARROW) - RIGHT;
      return data.filter(isLabels).flatMap(({ x, text }) => text.map((label, index) =>
        start + (x[index] - start) * width / (width - LETTER * brief(label).length)));
    });
    return [start, Math.max(end, ...ends)];
  }

  // Bands of states, as of the radio log, have their names inside where these fit.
  function nameBands(data, { xaxis, margin }, width) {
    for (const band of data.filter((trace) => trace.type === "bar" && trace.insidetextfont && xaxis.range)) {
      const scale = (width - margin.l - margin.r) / (xaxis.range[1] - xaxis.range[0]);
      band.text = band.text.map((name, index) => (band.x[index] * scale < LETTER * (name.length + 1) ? "" : name));
    }
  }

  function draw(figure, range) {
    const { data, layout } = painted(figure.text);
    layout.template = painted(JSON.stringify(shared.template));
    const narrowed = isNarrow(figure);
    if (range) layout.xaxis.range = [...range];
    else if (narrowed && figure.time !== undefined) layout.xaxis.range = wholeRange(figure);
    if (figure.log?.getAttribute("aria-pressed") === "true") {
      layout.yaxis = { ...layout.yaxis, type: "log", autorange: true };
    }
    if (printing) layout.width = PAPER;
    if (narrowed) {
      layout.margin = { ...layout.margin, r: RIGHT };
      if (layout.margin.l > NARROW) narrow(layout);
      for (const trace of data.filter(isLabels)) trace.text = trace.text.map(brief);
    }
    nameBands(data, layout, printing ? PAPER : figure.plot.clientWidth);
    figure.plot.style.height = `${figure.height}px`;
    const done = Plotly.react(figure.plot, data, layout, { ...config, displayModeBar: !narrowed });
    return narrowed || printing ? done.then(() => fitLegend(figure)) : done;
  }

  // A legend has more lines in less width; the figure grows by those that do not fit above it.
  function fitLegend({ plot, height }) {
    const { legend, margin } = plot._fullLayout;
    const missing = Math.ceil((legend?._height ?? 0) + 8 - margin.t);
    if (missing <= 0) return undefined;
    plot.style.height = `${height + missing}px`;
    // By default a horizontal legend has at most half of the height, and scrolls.
    const grown = { "legend.maxheight": Math.ceil(legend._height) + 8, "margin.t": margin.t + missing };
    return Plotly.relayout(plot, { ...grown, height: height + missing });
  }

  const currentRange = (figure) => beside(figure).find((other) => other.plot.layout)?.plot.layout.xaxis.range;
  const redraw = () => {
    if (!window.Plotly) return; // still being unpacked
    const ranges = figures.map(currentRange);
    figures.forEach((figure, index) => draw(figure, ranges[index]));
  };

  // The axes of one time move together.
  let following = false;
  function follow(moved, range) {
    following = true;
    const moves = beside(moved).map((figure) => Plotly.relayout(figure.plot, { "xaxis.range": [...range] }));
    Promise.all(moves).finally(() => { following = false; });
  }

  function listen(figure) {
    if (figure.time !== undefined) {
      figure.plot.on("plotly_relayout", (change) => {
        if (following) return;
        const range = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
        if (range[0] !== undefined) follow(figure, range);
        else if (change["xaxis.autorange"]) follow(figure, wholeRange(figure));
      });
      figure.plot.addEventListener("keydown", (event) => {
        const [start, end] = figure.plot.layout.xaxis.range;
        const step = (end - start) / 5;
        const moves = {
          ArrowLeft: [start - step, end - step],
          ArrowRight: [start + step, end + step],
          "+": [start + step, end - step],
          "-": [start - step, end + step],
          0: wholeRange(figure),
        };
        if (!moves[event.key] || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        follow(figure, moves[event.key]);
      });
    }
    // A point of a sweep carries the command that runs it again.
    const point = document.getElementById("point");
    if (point) {
      figure.plot.on("plotly_click", ({ points: [clicked] }) => {
        if (typeof clicked.customdata !== "string") return;
        point.querySelector("code").textContent = clicked.customdata;
        point.hidden = false;
        point.scrollIntoView({ block: "nearest" });
      });
    }
    figure.log?.addEventListener("click", () => {
      const pressed = figure.log.getAttribute("aria-pressed") !== "true";
      figure.log.setAttribute("aria-pressed", String(pressed));
      draw(figure, currentRange(figure));
    });
  }

  function choose(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    const input = document.querySelector(`input[name="theme"][value="${theme}"]`);
    if (input) input.checked = true;
  }
  for (const input of document.querySelectorAll('input[name="theme"]')) {
    input.addEventListener("change", () => { choose(input.value); redraw(); });
  }
  prefersDark.addEventListener("change", redraw);
  const folded = [...document.querySelectorAll("details")];
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = folded.filter((each) => !each.open);
    for (const each of opened) each.open = true;
    printing = true;
    redraw();
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
    printing = false;
    redraw();
    for (const { plot } of figures) if (plot.layout) Plotly.Plots.resize(plot);
  });

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      getSelection().selectAllChildren(code);
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "copied";
      } catch {
        button.textContent = "selected"; // a page from a file may not be allowed to write to the clipboard
      }
    });
  }

  // `?theme=dark` opens the page in that theme.
  const wanted = new URLSearchParams(location.search).get("theme");
  if (["light", "dark"].includes(wanted)) choose(wanted);

  // Plotly's library is in the page, compressed, or in a file beside it.
  async function unpack() {
    const packed = document.getElementById("library");
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed.textContent), (each) => each.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    packed.remove();
  }

  // The load event waits for this frame: a headless browser prints at that event.
  const frame = document.createElement("iframe");
  frame.hidden = true;
  document.body.append(frame);
  frame.contentDocument.open();
  const endLoading = () => {
    frame.contentDocument.close();
    frame.remove();
  };

  // One at a time, so that the page answers while it draws.
  async function drawAll() {
    for (const figure of figures) {
      await draw(figure, null);
      listen(figure);
      await new Promise((resolve) => setTimeout(resolve));
    }
    document.documentElement.dataset.drawn = "all";
  }
  unpack().then(drawAll).catch((error) => {
    const banner = document.createElement("p");
    banner.setAttribute("role", "alert");
    banner.textContent = `The figures cannot be drawn: ${error.message}. A newer browser may draw them.`;
    document.body.prepend(banner);
  }).finally(endLoading);
})();
