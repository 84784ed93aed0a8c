// The table of a scan: one row for each function with kin, which opens to all its hits.

import { cautions, failure, fill, make } from "./dom.js";
import {
  addressKey,
  baseName,
  builds,
  count,
  nameOf,
  percent,
  plural,
  seconds,
  tagTexts,
  words,
} from "./format.js";
import {
  compareLink,
  fileName,
  hitsTable,
  named,
  probabilityBar,
  remarks,
  tagList,
} from "./hits.js";
import { growing, sorter } from "./lists.js";
import { href } from "./router.js";
import { spelledWords, wordText } from "./words.js";
import { holdsGraphs, spoken } from "./wording.js";

const REFRESH_MS = 250;
const FORMATS = ["html", "json", "csv", "sarif", "cyclonedx"];
const CODE_FORMATS = new Set(["sarif", "cyclonedx"]);

const best = (result) => result.hits[0];
const COLUMNS = [
  { name: "function", label: "function", key: ({ query }) => nameOf(query) },
  {
    name: "address",
    label: "address",
    key: ({ query }) => addressKey(query.address),
    kind: "code",
    class: "of-code",
  },
  {
    name: "blocks",
    label: "blocks",
    key: ({ query }) => query.blocks,
    kind: "number",
    first: "descending",
    class: "number",
  },
  {
    name: "probability",
    label: "probability",
    key: (result) => best(result).probability,
    kind: "number",
    first: "descending",
    class: "of-code",
  },
  { name: "like", label: "is like", key: (result) => nameOf(best(result)) },
  { name: "of", label: "of", key: (result) => baseName(best(result).binary) },
];

const STATES = { waiting: "waiting", failed: "failed", cancelled: "cancelled", done: "done" };

/** "40%" or how it ended. */
export const progressOf = (scan) =>
  STATES[scan.state] ?? (scan.total ? percent(scan.done / scan.total) : "starting");

/** The head, the progress and the table of a scan. */
export function resultsTable({ cancel, again }) {
  const byReference = new Map();
  let due = null;
  let over = false;
  let state = null;

  const head = make("div", { class: "scan-head" });
  const bar = make("progress", { max: 1, "aria-label": "Progress of the scan" });
  const note = make("p", { class: "quiet" });
  const components = make("div", { class: "components" });
  const trouble = make("div");
  const filter = make("input", {
    type: "search",
    placeholder: spoken("Filter by function, file or tag"),
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Filter results",
  });
  const shown = make("span", { class: "quiet" });
  const body = make("tbody");
  const end = make("p", { class: "quiet" }, "more below…");
  const nothing = make("div", { class: "empty" }, nothingText(0, false));
  const list = growing(body, end, rowsOf);
  const order = sorter(COLUMNS, () => refresh(), "probability");
  const attributes = { class: "hits results", hidden: true };
  const table = make("table", attributes, order.tableHead("compare"), body);
  filter.addEventListener("input", () => refresh());

  function refresh({ keep = false } = {}) {
    due = null;
    tellApart([...byReference.values()].map(best));
    const wanted = words(filter.value);
    const fitting = [...byReference.values()].filter(({ text }) =>
      wanted.every((word) => text.includes(word)),
    );
    list.set(order.sorted(fitting), { keep });
    fill(shown, byReference.size ? `${count(fitting.length)} of ${count(byReference.size)} shown` : "");
    table.hidden = !fitting.length;
    nothing.hidden = fitting.length > 0;
    fill(nothing, nothingText(byReference.size, over));
  }

  function refreshSoon() {
    due ??= setTimeout(() => refresh({ keep: true }), REFRESH_MS);
  }

  function refreshNow() {
    clearTimeout(due);
    refresh({ keep: true });
  }

  return {
    filter,
    element: make(
      "div",
      { class: "scan" },
      head,
      bar,
      note,
      trouble,
      components,
      make("div", { class: "filter-line" }, make("label", { class: "grow" }, filter), shown),
      make("div", { class: "fits" }, table, end, nothing),
    ),

    /** Results as they come; one that comes again after a break is the same one. */
    add(results) {
      for (const result of results) {
        const known = byReference.get(result.query.reference);
        if (!known) byReference.set(result.query.reference, { ...result, text: textOf(result) });
      }
      refreshSoon();
    },

    update(scan) {
      over = scan.state in STATES && scan.state !== "waiting";
      if (state !== scan.state) fill(head, ...headOf(scan, over, cancel, again));
      state = scan.state;
      bar.hidden = over;
      if (scan.total) bar.value = scan.done / scan.total;
      fill(note, noteOf(scan));
      fill(components, componentsOf(scan.components ?? []));
      fill(trouble, scan.error ? failure({ message: scan.error }) : null, cautions(scan.warnings));
      // While rows keep coming, reading out every number would drown all else.
      shown.setAttribute("aria-live", over ? "polite" : "off");
      if (over) refreshNow();
      else refreshSoon();
    },

    interrupted() {
      fill(note, "The connection broke; connecting again…");
    },

    refuse(error) {
      fill(trouble, failure(error));
    },
  };
}

const nothingText = (size, over) => {
  if (size) return "Nothing passes the filter.";
  return over ? "No function of this file has probable kin in the library." : "Nothing found yet.";
};

function textOf({ query, hits }) {
  const texts = hits.flatMap((hit) => [
    nameOf(hit),
    hit.function,
    hit.binary,
    ...tagTexts(hit.tags),
    ...spelledWords(hit.shared, hit).map(wordText),
  ]);
  return [nameOf(query), query.function, query.address, ...texts].join(" ").toLowerCase();
}

function noteOf(scan) {
  if (scan.state === "waiting") return "Waiting for another scan to end.";
  const done = `${count(scan.done)} of ${plural(scan.total, "function")} looked up`;
  return `${done}, ${count(scan.found)} with probable kin, ${seconds(scan.seconds)}`;
}

/** A line for each binary of the library that is inside the file. */
function componentsOf(components) {
  if (!components.length) return null;
  const lines = components.map((component) => {
    const [best] = component.builds;
    const fit = [best.version, best.architecture, best.build].filter(Boolean).join(" ");
    const others = component.builds.length > 1 ? `, of ${component.builds.length} builds` : "";
    const share = `${count(component.functions)} of ${plural(best.known, "known function")}`;
    const where = component.ranges.map((range) => `${range.start}-${range.last}`).join(", ");
    return make(
      "li",
      { title: where },
      named(component.name),
      make("span", { class: "quiet" }, ` ${share}; fits best: `),
      named(fit || best.binary),
      make("span", { class: "quiet" }, others),
    );
  });
  return [make("h2", {}, "Components"), make("ul", {}, ...lines)];
}

function headOf(scan, over, cancel, again) {
  const title = make("h1", {}, named(scan.binary.name));
  if (!over) {
    const button = make("button", { type: "button", on: { click: cancel } }, "Cancel the scan");
    return [title, button];
  }
  const report = (format) => `/api/scans/${encodeURIComponent(scan.id)}/report?format=${format}`;
  const links = FORMATS.filter((format) => !(holdsGraphs() && CODE_FORMATS.has(format))).map((format) =>
    make("a", { class: "button", href: report(format), download: true }, format.toUpperCase()),
  );
  const label = make("span", { class: "quiet" }, "Export");
  const exports = make("div", { class: "exports" }, label, links);
  const functions = href("search", { binary: scan.binary.id });
  const open = make("a", { class: "button", href: functions }, "Its functions");
  const once = make("button", { type: "button", on: { click: () => again(scan) } }, "Scan again");
  return [title, make("div", { class: "exports" }, open, once), exports];
}

const made = new WeakMap();

function rowsOf(result) {
  if (!made.has(result)) made.set(result, [resultRow(result)]);
  return made.get(result);
}

const buildTexts = new WeakMap();
const buildPlaces = new WeakMap();

/** Says of each best hit which build it is of; more hits may need longer texts. */
function tellApart(hits) {
  for (const [hit, text] of builds(hits)) {
    if (buildTexts.get(hit) === text) continue;
    buildTexts.set(hit, text);
    if (buildPlaces.has(hit)) fill(buildPlaces.get(hit), named(text));
  }
}

function resultRow(result) {
  const { query } = result;
  const hit = best(result);
  const others = result.hits.length - 1;
  const button = make(
    "button",
    { type: "button", class: "expand mono", "aria-expanded": "false", title: "Show all hits" },
    make("span", { title: query.function }, named(nameOf(query))),
  );
  const build = make("span", { class: "quiet of" }, named(buildTexts.get(hit) ?? hit.build));
  buildPlaces.set(hit, build);
  const cell = (name, style, ...content) =>
    make("td", { class: style, "data-name": name }, ...content);
  const row = make(
    "tr",
    {},
    cell(null, "wide", button),
    cell("address", "mono of-code", query.address ?? ""),
    cell(spoken("blocks"), "number", count(query.blocks)),
    cell("probability", "of-code", probabilityBar(hit.probability)),
    cell(
      "is like",
      "wide",
      make("span", { class: "mono", title: hit.function }, named(nameOf(hit))),
      others > 0 && make("span", { class: "quiet" }, ` and ${plural(others, "other")}`),
      tagList(tagTexts(hit.tags)),
      ...remarks(hit),
    ),
    cell("of", "", fileName(hit.binary), build),
    make("td", { class: "act" }, compareLink(query.reference, hit.reference, nameOf(hit))),
  );
  button.addEventListener("click", () => toggle(result, row, button));
  return row;
}

function toggle(result, row, button) {
  const rows = rowsOf(result);
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) {
    rows.pop().remove();
    return;
  }
  const inside = hitsTable(result.hits, result.query.reference);
  const cell = make("td", { colspan: COLUMNS.length + 1 }, inside);
  const details = make("tr", { class: "details" }, cell);
  rows.push(details);
  row.after(details);
}
