// What is in view: blocks, and lines between the two functions.

// Functions of a usual size have all their blocks in the page, so that a browser's search finds
// them; of larger ones only those in and around the view are there.
function fill({ pane, places, blocks, shown, canvas, sizer }) {
  const all = blocks.length <= MOST_BLOCKS;
  const x = (pane.scrollLeft - sizer.offsetLeft) / state.zoom;
  const y = pane.scrollTop / state.zoom;
  const view = {
    left: x - MARGIN,
    top: y - MARGIN,
    right: x + pane.clientWidth / state.zoom + MARGIN,
    bottom: y + pane.clientHeight / state.zoom + MARGIN,
  };
  const fresh = [];
  places.boxes.forEach(([left, top, width, height], number) => {
    const wanted = all || visible({ left, top, right: left + width, bottom: top + height }, view);
    if (wanted === shown.has(number)) return;
    if (wanted) {
      shown.add(number);
      fresh.push(blocks[number]);
    } else if (!blocks[number].contains(document.activeElement)) {
      shown.delete(number);
      blocks[number].remove();
    }
  });
  if (fresh.length) canvas.append(...fresh);
}

// --- Lines between the two functions -------------------------------------------------------

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    sides.forEach(fill);
    drawLinks();
  });
}

function views() {
  const origin = overlay.getBoundingClientRect();
  return sides.map(({ pane, sizer }) => {
    const frame = pane.getBoundingClientRect();
    const left = frame.left - origin.left,
      top = frame.top - origin.top;
    return {
      left,
      top,
      right: left + pane.clientWidth,
      bottom: top + pane.clientHeight,
      x: left - pane.scrollLeft + sizer.offsetLeft,
      y: top - pane.scrollTop,
    };
  });
}

function box(view, which, number) {
  const [x, y, w, h] = sides[which].places.boxes[number].map((value) => value * state.zoom);
  return { left: view.x + x, top: view.y + y, right: view.x + x + w, bottom: view.y + y + h };
}

const within = (value, low, high) => Math.min(Math.max(value, low), high);
const visible = (b, v) =>
  b.right > v.left && b.left < v.right && b.bottom > v.top && b.top < v.bottom;

function curve(a, b, [first, second]) {
  if (stacked.matches) {
    const x1 = within((a.left + a.right) / 2, first.left, first.right),
      x2 = within((b.left + b.right) / 2, second.left, second.right);
    const y1 = within(a.bottom, first.top, first.bottom),
      y2 = within(b.top, second.top, second.bottom),
      bend = Math.max((y2 - y1) / 2, 30);
    return `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  }
  const x1 = within(a.right, first.left, first.right),
    x2 = within(b.left, second.left, second.right);
  const y1 = within(a.top + 9 * state.zoom, first.top, first.bottom),
    y2 = within(b.top + 9 * state.zoom, second.top, second.bottom);
  const bend = Math.max((x2 - x1) / 2, 24);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}

function drawLinks() {
  const both = views(),
    at = state.hovered ?? state.held;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  let lines = [];
  if (at !== null) {
    lines = attention(state.step)[at.which][at.number].map(([target, weight]) => ({
      left: at.which === 0 ? at.number : target,
      right: at.which === 0 ? target : at.number,
      weight,
      hue: 35,
    }));
  } else if (byId("links").checked) {
    lines = pairs;
  }
  const paths = [];
  for (const line of lines) {
    const a = box(both[0], 0, line.left),
      b = box(both[1], 1, line.right);
    if (
      at === null
        ? !(visible(a, both[0]) && visible(b, both[1]))
        : !(visible(a, both[0]) || visible(b, both[1]))
    )
      continue;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", curve(a, b, both));
    path.setAttribute(
      "stroke",
      `hsl(${line.hue} ${at === null ? "55% 50%" : dark ? "95% 60%" : "95% 42%"})`,
    );
    path.setAttribute("stroke-opacity", Math.max(line.weight, 0.08).toFixed(2));
    paths.push(path);
    if (paths.length >= MOST_LINKS) break;
  }
  overlay.replaceChildren(...paths);
}
