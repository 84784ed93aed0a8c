// The table of a diff: a row for each function, filtered by verdict and by text.

import { cautions, failure, fill, make } from "./dom.js";
import {
  addressKey,
  count,
  nameOf,
  percent,
  plural,
  probability,
  seconds,
  words,
} from "./format.js";
import { compareLink, named } from "./hits.js";
import { growing, sorter } from "./lists.js";

const FORMATS = ["html", "json", "csv"];
const VERDICTS = ["identical", "same", "changed", "removed", "added"];
const STATES = { waiting: "waiting", failed: "failed", cancelled: "cancelled", done: "done" };

const either = ({ left, right }) => left ?? right;
const COLUMNS = [
  { name: "function", label: "function", key: (row) => nameOf(either(row)) },
  { name: "became", label: "became", key: (row) => became(row) || null },
  { name: "verdict", label: "verdict", key: (row) => row.verdict },
  {
    name: "alike",
    label: "alike",
    title: "How much of the one is in the other",
    key: (row) => row.similarity,
    kind: "number",
  },
  {
    name: "probability",
    label: "probability",
    key: (row) => row.probability,
    kind: "number",
    first: "descending",
  },
  {
    name: "address",
    label: "address",
    key: (row) => addressKey(either(row).address),
    kind: "code",
  },
  { name: "what", label: "what changed", key: (row) => row.what },
];

/** "40%" or how it ended. */
export const progressOf = (state) =>
  STATES[state.state] ?? (state.total ? percent(state.done / state.total) : "starting");

const became = ({ left, right }) =>
  left && right && nameOf(left) !== nameOf(right) ? nameOf(right) : "";

function whatChanged({ blocks, calls_removed: removed, calls_added: added }) {
  const counts = blocks
    ? [
        ["~", blocks.changed],
        ["-", blocks.removed],
        ["+", blocks.added],
      ].filter(([, numbers]) => numbers.length)
    : [];
  const signs = counts.map(([sign, numbers]) => `${sign}${numbers.length}`);
  return [
    ...(signs.length ? [`${signs.join(" ")} blocks`] : []),
    ...removed.map((name) => `-${name}`),
    ...added.map((name) => `+${name}`),
  ].join(", ");
}

function rowsOfDiff({ pairs, removed, added }) {
  const rows = [
    ...pairs.map((pair) => ({ ...pair, what: whatChanged(pair) })),
    ...removed.map((left) => alone("removed", left, null)),
    ...added.map((right) => alone("added", null, right)),
  ];
  for (const row of rows) {
    const names = [row.left, row.right].filter(Boolean).flatMap((each) => [nameOf(each), each.address]);
    row.text = [row.verdict, ...names, row.what].join(" ").toLowerCase();
  }
  // What changed is what people came for, the most changed on top.
  const rank = { changed: 0, removed: 1, added: 2, same: 3, identical: 4 };
  return rows.sort(
    (a, b) => rank[a.verdict] - rank[b.verdict] || (a.similarity ?? 0) - (b.similarity ?? 0),
  );
}

const alone = (verdict, left, right) => ({
  verdict,
  left,
  right,
  similarity: null,
  probability: null,
  what: "",
});

/** The head, the progress and the table of a diff. */
export function diffTable({ cancel }) {
  let rows = [];
  const head = make("div", { class: "scan-head" });
  const bar = make("progress", { max: 1, "aria-label": "Progress of the diff" });
  const note = make("p", { class: "quiet" });
  const trouble = make("div");
  const verdicts = make("div", { class: "verdicts", role: "group", "aria-label": "Verdicts" });
  const filter = make("input", {
    type: "search",
    placeholder: "Filter by function, address or call",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Filter functions",
  });
  const shown = make("span", { class: "quiet", "aria-live": "polite" });
  const body = make("tbody");
  const end = make("p", { class: "quiet" }, "more below…");
  const nothing = make("div", { class: "empty", hidden: true }, "Nothing passes the filter.");
  const list = growing(body, end, (row) => [rowOf(row)]);
  const order = sorter(COLUMNS, () => refresh());
  const table = make("table", { class: "hits results" }, order.tableHead("compare"), body);
  const filterLine = make(
    "div",
    { class: "filter-line", hidden: true },
    make("label", { class: "grow" }, filter),
    shown,
  );
  const place = make("div", { class: "fits", hidden: true }, table, end, nothing);
  filter.addEventListener("input", () => refresh());

  function refresh() {
    const wanted = words(filter.value);
    const chosen = [...verdicts.children].filter(isPressed).map(({ dataset }) => dataset.verdict);
    const fitting = rows.filter(
      ({ text, verdict }) =>
        wanted.every((word) => text.includes(word)) && (!chosen.length || chosen.includes(verdict)),
    );
    list.set(order.sorted(fitting));
    fill(shown, `${count(fitting.length)} of ${count(rows.length)} shown`);
    table.hidden = !fitting.length;
    nothing.hidden = fitting.length > 0;
  }

  return {
    filter,
    element: make("div", { class: "scan" }, head, bar, note, trouble, verdicts, filterLine, place),

    update(state) {
      const over = state.state in STATES && state.state !== "waiting";
      fill(head, ...headOf(state, over, cancel));
      bar.hidden = over;
      if (state.total) bar.value = state.done / state.total;
      fill(note, noteOf(state));
      if (state.error) fill(trouble, failure({ message: state.error }));
    },

    show(diff) {
      rows = rowsOfDiff(diff);
      fill(trouble, cautions(diff.warnings));
      fill(verdicts, verdictButtons(rows, refresh));
      filterLine.hidden = false;
      place.hidden = false;
      refresh();
    },

    interrupted() {
      fill(note, "The connection broke; connecting again…");
    },

    refuse(error) {
      fill(trouble, failure(error));
    },
  };
}

const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

/** A button for each verdict, with a bar as long as its share. */
function verdictButtons(rows, onChange) {
  return VERDICTS.map((verdict) => {
    const number = rows.filter((row) => row.verdict === verdict).length;
    const bar = make("i", { "aria-hidden": "true", vars: { "--share": number / (rows.length || 1) } });
    const button = make(
      "button",
      { type: "button", class: `verdict ${verdict}`, "aria-pressed": "false", data: { verdict } },
      make("b", {}, count(number)),
      ` ${verdict}`,
      bar,
    );
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!isPressed(button)));
      onChange();
    });
    return button;
  });
}

function noteOf(state) {
  if (state.state === "waiting") return "Waiting for another diff to end.";
  const read = `${count(state.done)} of ${plural(state.total, "function")} read`;
  return `${state.state === "running" ? `${state.step}, ` : ""}${read}, ${seconds(state.seconds)}`;
}

function headOf(state, over, cancel) {
  const title = make("h1", {}, named(state.left.name), " → ", named(state.right.name));
  if (!over) {
    return [title, make("button", { type: "button", on: { click: cancel } }, "Cancel the diff")];
  }
  if (state.state !== "done") return [title];
  const report = (format) => `/api/diffs/${encodeURIComponent(state.id)}/report?format=${format}`;
  const links = FORMATS.map((format) =>
    make("a", { class: "button", href: report(format), download: true }, format.toUpperCase()),
  );
  const label = make("span", { class: "quiet" }, "Export");
  return [title, make("div", { class: "exports" }, label, links)];
}

const made = new WeakMap();

function rowOf(row) {
  if (!made.has(row)) made.set(row, makeRow(row));
  return made.get(row);
}

function makeRow(row) {
  const { left, right } = row;
  const cell = (name, style, ...content) =>
    make("td", { class: style, "data-name": name }, ...content);
  const isPair = left?.reference && right?.reference;
  return make(
    "tr",
    {},
    cell(null, "wide mono", named(nameOf(either(row)))),
    cell("became", "wide mono", named(became(row))),
    cell("verdict", "", make("span", { class: `verdict ${row.verdict}` }, row.verdict)),
    cell("alike", "number", row.similarity === null ? "" : percent(row.similarity)),
    cell("probability", "number", row.probability === null ? "" : probability(row.probability)),
    cell("address", "mono", [left?.address, right?.address].filter(Boolean).join(" → ")),
    cell("what changed", "wide", row.what),
    make("td", { class: "act" }, isPair && compareLink(left.reference, right.reference, nameOf(right))),
  );
}
