// The kin of one function: settings, the search, and what it found.

import { get, post, status } from "./api.js";
import { codePanel } from "./code.js";
import { byId, calm, cautions, empty, emptyLibrary, failure, fill, make, say, spinner } from "./dom.js";
import { nameOf, plural, probability, seconds, wildcard } from "./format.js";
import { fileName, hitsTable, named, summary } from "./hits.js";
import { href } from "./router.js";
import { holdsGraphs } from "./wording.js";

const FILTERS = ["in", "named", "architecture", "compiler"];
const CHOICES = ["rerank", "min_probability", "top"];
/** What the page itself has chosen. */
const DEFAULTS = Object.fromEntries(
  CHOICES.map((name) => {
    const { options } = byId("kin-settings").elements[name];
    return [name, [...options].find((option) => option.defaultSelected).value];
  }),
);

/** `onSettings` gets the settings that differ from the defaults, after a person changed one. */
export function kinPanel(onSettings) {
  const form = byId("kin-settings");
  const code = codePanel();
  const note = byId("kin-status");
  const area = byId("kin-found");
  let running = null;
  let asked = null;
  let answered = null;

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", () => onSettings(settings(form)));
  byId("kin-clear").addEventListener("click", () => {
    for (const name of FILTERS) form.elements[name].value = "";
    onSettings(settings(form));
  });
  byId("kin-filters").addEventListener("toggle", suggest, { once: true });

  function showInstead(content) {
    running?.abort();
    asked = answered = null;
    form.hidden = true;
    byId("kin-terms").hidden = true;
    fill(note);
    fill(area, content);
  }

  async function search(reference, params) {
    const wanted = body(reference, params);
    // Coming back to what is shown asks again only after the library changed.
    const key = JSON.stringify([wanted, status().functions]);
    if (key === answered) return;
    running?.abort();
    answered = null;
    const mine = (running = new AbortController());
    const same = asked === reference;
    asked = reference;
    area.classList.toggle("stale", same);
    fill(note, spinner("searching…"));
    if (!same) {
      fill(area);
      byId("kin-terms").hidden = true;
    }
    try {
      const answer = await post("/api/search", wanted, { signal: mine.signal });
      answered = key;
      showHead(reference, answer.query);
      showAnswer(reference, answer, hasFilters(params));
    } catch (error) {
      if (error.name === "AbortError") return;
      fill(note);
      fill(area, failure(error, () => search(reference, params)));
      byId("kin-terms").hidden = true;
    }
    area.classList.remove("stale");
  }

  function showAll() {
    form.elements.min_probability.value = "0";
    onSettings(settings(form));
  }

  function showAnswer(reference, answer, filtered) {
    const { hits, seconds: taken, best_left_out: leftOut } = answer;
    const warnings = cautions(answer.warnings);
    const rest = leftOut === null ? null : improbable(leftOut, showAll);
    fill(note, `${hits.length ? plural(hits.length, "hit") : "Nothing"} in ${seconds(taken)}`);
    say(summary(hits));
    byId("kin-terms").hidden = !hits.length;
    if (!hits.length) {
      fill(area, warnings, rest ? null : nothing(filtered), rest);
      return;
    }
    const unsure = !holdsGraphs() && hits.every((hit) => hit.probability === null);
    fill(area, warnings, unsure && uncalibrated(), hitsTable(hits, reference), rest);
  }

  return {
    /** Says why there are no kin to show. */
    showNothing(content) {
      fill(byId("kin-head"));
      code.hide();
      showInstead(content);
    },

    /** Searches for the kin of a function; `known` is what can be said of it before. */
    show(reference, known, params) {
      restore(form, params);
      const { functions, can_rerank: canRerank } = status();
      form.elements.rerank.disabled = !canRerank;
      form.hidden = false;
      code.show(reference);
      if (known) showHead(reference, known);
      else if (asked !== reference) fill(byId("kin-head"));
      if (!functions) return showInstead(emptyLibrary());
      return search(reference, params);
    },

    /** On a phone the kin are below the list. */
    reveal() {
      const place = byId("kin");
      if (place.getBoundingClientRect().top < innerHeight - 200) return;
      place.scrollIntoView({ behavior: calm() ? "auto" : "smooth", block: "start" });
    },
  };
}

function showHead(reference, known) {
  const { binary, address, blocks } = known;
  const facts = [fileName(binary), address && ` · ${address}`, ` · ${plural(blocks, "block")}`];
  const link = make("a", { class: "button", href: href("compare", { left: reference }) });
  fill(link, "Compare with…");
  fill(
    byId("kin-head"),
    make("div", { class: "title-line" }, make("h2", { class: "mono", title: known.function }, named(nameOf(known))), link),
    make("p", { class: "quiet" }, facts),
  );
}

const hasFilters = (params) => FILTERS.some((name) => params[name]);

function body(reference, params) {
  const { can_rerank: canRerank } = status();
  return {
    query: reference,
    top: Number(params.top ?? DEFAULTS.top),
    rerank: canRerank ? Number(params.rerank ?? DEFAULTS.rerank) : 0,
    min_probability: Number(params.min_probability ?? DEFAULTS.min_probability),
    where: {
      binary: wildcard(params.in ?? ""),
      function: wildcard(params.named ?? ""),
      architecture: wildcard(params.architecture ?? ""),
      compiler: wildcard(params.compiler ?? ""),
    },
  };
}

/** What a person chose, without what is the default anyway. */
function settings(form) {
  const chosen = [...FILTERS, ...Object.keys(DEFAULTS)].map((name) => {
    const value = form.elements[name].value.trim();
    return [name, value === DEFAULTS[name] ? "" : value];
  });
  return Object.fromEntries(chosen);
}

function restore(form, params) {
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const select = form.elements[name];
    const wanted = params[name] ?? value;
    if (![...select.options].some((option) => option.value === wanted)) {
      select.append(make("option", {}, wanted));
    }
    select.value = wanted;
  }
  for (const name of FILTERS) form.elements[name].value = params[name] ?? "";
  const used = FILTERS.filter((name) => params[name]).length;
  const badge = form.querySelector(".count");
  badge.hidden = !used;
  fill(badge, used);
  if (used) byId("kin-filters").open = true;
}

/** Fills the suggestions of the filters with what the library has. */
async function suggest() {
  try {
    const { architectures, compilers } = await get("/api/library");
    const options = (counts) => Object.keys(counts).map((value) => make("option", { value }));
    fill(byId("architectures"), options(architectures));
    fill(byId("compilers"), options(compilers));
  } catch {
    // Suggestions only: the filters work without.
  }
}

const nothing = (filtered) =>
  filtered
    ? empty("Nothing passes the filters.", make("p", {}, "Clear or widen the filters above."))
    : empty("The library has no kin of this function.");

/** Hits that are there, but less probable than asked for. */
const improbable = (best, show) =>
  make(
    "p",
    { class: "notice" },
    `Less probable hits are left out; the best of them has ${probability(best)}. `,
    make("button", { type: "button", class: "plain", on: { click: show } }, "Show them"),
  );

const uncalibrated = () =>
  make(
    "p",
    { class: "notice" },
    "This model has no probabilities for these hits; they are in the order of their scores.",
  );
