// What is in view, blocks and lines between the two functions, and how a person changes it.

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

sides.forEach((side, which) => {
  const numbers = new Map(side.blocks.map((block, number) => [block, number]));
  const under = (event) => numbers.get(event.target.closest(".block")) ?? null;
  const choose = (number) => {
    hold(which, number);
    const other = best(which, number);
    if (other !== null) reveal(1 - which, other);
  };
  let from = null;
  side.pane.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || from) return;
    const number = under(event);
    if ((state.hovered?.number ?? null) === number && state.hovered?.which === which) return;
    state.hovered = number === null ? null : { which, number };
    show();
  });
  side.pane.addEventListener("pointerleave", () => {
    state.hovered = null;
    show();
  });
  side.pane.addEventListener("click", (event) => {
    const number = under(event);
    if (number !== null) choose(number);
  });
  side.pane.addEventListener("keydown", (event) => {
    const number = under(event);
    if (number !== null && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      choose(number);
    }
  });
  side.pane.addEventListener("scroll", redraw, { passive: true });
  side.pane.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || under(event) !== null) return;
    from = { x: event.clientX + side.pane.scrollLeft, y: event.clientY + side.pane.scrollTop };
    side.pane.classList.add("dragged");
  });
  addEventListener("pointermove", (event) => {
    if (from) side.pane.scrollTo(from.x - event.clientX, from.y - event.clientY);
  });
  addEventListener("pointerup", () => {
    from = null;
    side.pane.classList.remove("dragged");
  });
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    state.held = state.hovered = null;
    show();
  }
});
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
byId("step").addEventListener("input", (event) => {
  state.step = Number(event.target.value);
  recolour();
});
byId("threshold").addEventListener("input", (event) => {
  state.threshold = Number(event.target.value);
  recolour();
});
byId("zoom").addEventListener("input", (event) => {
  state.zoom = Number(event.target.value);
  rescale();
});
byId("links").addEventListener("change", redraw);

// A page that shows this one inside itself says what is compared.
document.body.classList.toggle("framed", window.parent !== window);
place();
rescale();
recolour();
sides.forEach((side, which) => {
  const [x, , w] = side.places.boxes[0];
  side.pane.scrollLeft = (x + w / 2) * state.zoom - side.pane.clientWidth / 2;
});
