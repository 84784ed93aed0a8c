// Compare: two functions side by side, in the same page that `graphkin compare --html` writes.

import { errorOf, get, withQuery } from "./api.js";
import { chooser } from "./chooser.js";
import { byId, copyFrom, empty, failure, fill, gone, make, say, spinner } from "./dom.js";
import { baseName, made, nameOf, plural } from "./format.js";
import { go } from "./router.js";
import { dropZone } from "./uploads.js";
import { holdsGraphs, spoken } from "./wording.js";

const SIDES = ["left", "right"];

export function compareView() {
  const choose = chooser();
  const stage = byId("compare-stage");
  const known = new Map();
  let current = {};
  let staged = null;

  const pathOf = ({ left, right }, download) =>
    withQuery("/api/comparison.html", { left, right, download });

  byId("compare-swap").addEventListener("click", () =>
    go("compare", { left: current.right, right: current.left }),
  );
  byId("compare-copy").addEventListener("click", (event) =>
    copyFrom(event.currentTarget, location.href),
  );

  function pick(side) {
    choose.open(spoken(`Choose the function on the ${side}`), (reference) =>
      go("compare", { ...current, [side]: reference }),
    );
  }

  async function showSide(side) {
    const place = byId(`compare-${side}`);
    const reference = current[side];
    const change = make("button", { type: "button", on: { click: () => pick(side) } });
    if (!reference) {
      fill(change, spoken(`Choose the ${side} function`));
      change.className = "choose";
      return fill(place, change);
    }
    fill(change, "Change");
    change.setAttribute("aria-label", spoken(`Change the ${side} function`));
    if (!known.has(reference)) fill(place, spinner("reading…"));
    try {
      const facts = await describe(reference);
      if (current[side] === reference) fill(place, ...sideHead(facts, change));
    } catch (error) {
      if (current[side] !== reference) return;
      const text = error.status === 404 ? `The ${side} function is gone.` : error.message;
      fill(place, make("p", { class: "name" }, text), change);
    }
  }

  async function describe(reference) {
    if (!known.has(reference)) {
      const { blocks, nodes, ...facts } = await get(
        `/api/functions/${encodeURIComponent(reference)}`,
      );
      known.set(reference, { ...facts, blocks: (nodes ?? blocks).length });
    }
    return known.get(reference);
  }

  function showStage() {
    const { left, right } = current;
    const ready = Boolean(left && right);
    const save = byId("compare-save");
    byId("compare-swap").disabled = !left && !right;
    byId("compare-copy").disabled = !ready;
    if (ready) save.href = pathOf(current, 1);
    else save.removeAttribute("href");
    save.setAttribute("aria-disabled", String(!ready));
    const wanted = ready ? pathOf(current) : "";
    if (staged === wanted) return;
    staged = wanted;
    if (ready) load(wanted);
    else fill(stage, introduction(current));
  }

  function load(path, { again = false } = {}) {
    const wait = spinner("comparing block by block…");
    const title = holdsGraphs()
      ? "Comparison of the two graphs: nodes, which is which, attention"
      : "Comparison of the two functions: control flow, matched blocks, attention";
    const frame = make("iframe", { title, src: path, class: "loading" });
    frame.addEventListener("load", async () => {
      if (staged !== path) return;
      const error = isComparison(frame) ? null : (errorIn(frame) ?? (await problemOf(path)));
      if (staged !== path) return;
      if (error === SOLVED && !again) return load(path, { again: true });
      wait.remove();
      if (error) {
        staged = null;
        showProblem(error);
        return;
      }
      frame.classList.remove("loading");
      say("The comparison is shown");
    });
    fill(stage, wait, frame);
  }

  function showProblem(error) {
    if (error.status !== 404 && !GONE.has(error.kind)) return fill(stage, failure(error, showStage));
    // The same file has the same reference, so opening it again is enough.
    const zone = dropZone({ title: "Open the file once more", take: () => refresh() });
    fill(stage, gone(), zone.element);
  }

  function refresh() {
    for (const side of SIDES) showSide(side).then(nameTitle);
    showStage();
  }

  return {
    show(params) {
      current = { left: params.left, right: params.right };
      refresh();
    },
    drop(files) {
      pick(current.left ? "right" : "left");
      choose.send(files);
    },
    filter: () => null,
  };

  function nameTitle() {
    const sides = SIDES.map((side) => known.get(current[side]));
    if (!byId("compare").hidden && sides.every(Boolean)) {
      document.title = `${sides.map(nameOf).join(" and ")} · graphkin`;
    }
  }
}

function sideHead(facts, change) {
  const more = [facts.address, plural(facts.blocks, "block"), facts.label, facts.build, made(facts)].filter(Boolean);
  const text = `${baseName(facts.binary)} · ${more.join(" · ")}`;
  return [
    make(
      "div",
      { class: "side-text" },
      make("h2", { class: "mono", title: facts.function }, nameOf(facts)),
      make("p", { class: "quiet", title: `${facts.binary} · ${more.join(" · ")}` }, text),
    ),
    change,
  ];
}

// A frame loads errors like pages and does not tell its status, so look for the drawing.
const isComparison = (frame) => Boolean(frame.contentDocument?.getElementById("overlay"));

/** The error that a frame shows, if it can be read: nothing need be computed again to know it. */
function errorIn(frame) {
  const text = frame.contentDocument?.body?.textContent;
  const error = text ? errorOf(0, text) : null;
  return error?.kind === "unknown" ? null : error;
}

/** Kinds of errors that mean: the server does not have the function any more. */
const GONE = new Set(["UnknownError", "UnknownIdError"]);

const SOLVED = new Error("The comparison cannot be shown here. Save it as a file instead.");

/** Why there is no page; SOLVED where asking once more, and for the token, went well. */
async function problemOf(path) {
  try {
    await get(path.replace("/api/comparison.html", "/api/comparison"));
    return SOLVED;
  } catch (error) {
    return error;
  }
}

const introduction = ({ left, right }) =>
  empty(
    left || right ? "Choose the other function." : "Choose two functions to compare.",
    make(
      "p",
      {},
      holdsGraphs() ? "Both graphs" : "Both control flows",
      spoken(" are drawn side by side, and every block points to the one that it "),
      "matches. Hits of Search and Scan open here too.",
    ),
  );
