// What the page shows: pairs of blocks in colour, and the attention of one block.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const MOST_LINKS = 300,
  MOST_ROWS = 50,
  MOST_BLOCKS = 300,
  MARGIN = 600,
  GOLDEN_ANGLE = 137.508;
const byId = (id) => document.getElementById(id);
const sides = ["left", "right"].map((name) => {
  const pane = byId(name);
  return {
    pane,
    places: data[name],
    sizer: pane.querySelector(".sizer"),
    canvas: pane.querySelector(".canvas"),
    blocks: [...pane.querySelector("template").content.children],
    shown: new Set(),
    hues: [],
  };
});
const overlay = byId("overlay"),
  stacked = matchMedia("(max-width: 760px)");
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// Rows of sparse attention, unpacked: rows[block] is a list of [target, weight].
function unpack(packed) {
  let at = 0;
  return packed.counts.map((count) => {
    const row = [];
    for (const end = at + count; at < end; at++)
      row.push([packed.targets[at], packed.weights[at] / data.scale]);
    return row;
  });
}
const unpacked = new Map();
function attention(step) {
  if (!unpacked.has(step))
    unpacked.set(step, [unpack(data.steps[step].forth), unpack(data.steps[step].back)]);
  return unpacked.get(step);
}

const state = {
  step: data.shown,
  threshold: Number(byId("threshold").value),
  zoom: stacked.matches ? 0.7 : 1,
  held: null,
  hovered: null,
};
// A matcher that looks at the other function once has no steps to choose from.
byId("step").closest("label").hidden = data.steps.length < 2;
let pairs = [],
  partner = [[], []];

function place() {
  for (const side of sides) {
    const { boxes, width, height } = side.places;
    side.canvas.style.width = width + "px";
    side.canvas.style.height = height + "px";
    side.blocks.forEach((block, number) => {
      const [x, y, w, h] = boxes[number];
      Object.assign(block.style, {
        left: x + "px",
        top: y + "px",
        width: w + "px",
        height: h + "px",
      });
    });
  }
}

function rescale() {
  for (const side of sides) {
    side.canvas.style.transform = `scale(${state.zoom})`;
    side.sizer.style.width = side.places.width * state.zoom + "px";
    side.sizer.style.height = side.places.height * state.zoom + "px";
  }
  byId("zoom").value = state.zoom;
  byId("zoom-value").textContent = Math.round(state.zoom * 100) + "%";
  redraw();
}

function recolour() {
  pairs = data.steps[state.step].pairs
    .map(([left, right, weight]) => ({ left, right, weight: weight / data.scale }))
    .filter((pair) => pair.weight >= state.threshold);
  partner = sides.map((side) => new Array(side.blocks.length).fill(null));
  pairs.forEach((pair, index) => {
    pair.hue = Math.round((210 + index * GOLDEN_ANGLE) % 360);
    partner[0][pair.left] = partner[1][pair.right] = pair;
  });
  sides.forEach((side, which) =>
    side.blocks.forEach((block, number) => {
      const hue = partner[which][number]?.hue ?? null;
      if (side.hues[number] === hue) return;
      side.hues[number] = hue;
      block.classList.toggle("pair", hue !== null);
      if (hue !== null) block.style.setProperty("--hue", hue);
    }),
  );
  const total = sides[0].blocks.length,
    share = pairs.length / total;
  const rounded = share > 0.99 && share < 1 ? 99 : Math.round(100 * share);
  byId("share").textContent = `${rounded}% (${pairs.length} of ${total})`;
  byId("step-value").textContent = state.step;
  byId("threshold-value").textContent = state.threshold.toFixed(2);
  listPairs();
  show();
}

function listPairs() {
  const strongest = [...pairs].sort((a, b) => b.weight - a.weight).slice(0, MOST_ROWS);
  byId("pairs-note").textContent =
    pairs.length > MOST_ROWS ? `${MOST_ROWS} of ${pairs.length}` : `${pairs.length}`;
  byId("pairs").replaceChildren(
    ...strongest.map((pair) => {
      const row = document.createElement("tr"),
        meter = document.createElement("meter");
      meter.value = pair.weight;
      const weight = document.createElement("td");
      weight.append(meter, pair.weight.toFixed(2));
      row.append(weight);
      [pair.left, pair.right].forEach((number, which) => {
        const button = document.createElement("button"),
          head = document.createElement("td"),
          code = document.createElement("td");
        button.type = "button";
        button.textContent = `${sides[which].places.addresses[number]} #${number}`;
        button.addEventListener("click", () => {
          hold(which, number);
          reveal(0, pair.left);
          reveal(1, pair.right);
          byId("left").scrollIntoView({ block: "nearest" });
        });
        head.append(button);
        code.textContent = sides[which].blocks[number]
          .querySelector("pre")
          .textContent.split("\n")[0]
          .slice(0, 40);
        row.append(head, code);
      });
      return row;
    }),
  );
}

// --- Attention of one block ---------------------------------------------------------------

let marked = [];
function show() {
  for (const block of marked) block.classList.remove("held", "seen");
  marked = [];
  const at = state.hovered ?? state.held;
  document.body.classList.toggle("busy", state.held !== null);
  if (at !== null) {
    const own = sides[at.which].blocks[at.number];
    own.classList.add("held");
    marked.push(own);
    for (const [target, weight] of attention(state.step)[at.which][at.number]) {
      const block = sides[1 - at.which].blocks[target];
      block.classList.add("seen");
      block.style.setProperty("--weight", Math.max(weight, 0.15));
      block.querySelector(".strip").dataset.weight = weight.toFixed(2);
      marked.push(block);
    }
  }
  redraw();
}

function hold(which, number) {
  state.held = { which, number };
  state.hovered = null;
  show();
}

function best(which, number) {
  const pair = partner[which][number];
  if (pair) return which === 0 ? pair.right : pair.left;
  const row = attention(state.step)[which][number];
  return row.length ? row[0][0] : null;
}

function reveal(which, number) {
  const side = sides[which],
    [x, y, w, h] = side.places.boxes[number].map((value) => value * state.zoom);
  side.pane.scrollTo({
    left: side.sizer.offsetLeft + x + w / 2 - side.pane.clientWidth / 2,
    top: y + Math.min(h, side.pane.clientHeight - 40) / 2 - side.pane.clientHeight / 2,
    behavior: calm.matches ? "auto" : "smooth",
  });
}
