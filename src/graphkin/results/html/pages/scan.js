"use strict";
const MOST_PAIRS = 10;

const decimal = (value, digits) => (value === null ? "" : value.toFixed(digits));
const percent = (share) => (share > 0.99 && share < 1 ? "99%" : Math.round(100 * share) + "%");

/** A name whose lines end only between its pieces; "" where there is none. */
const named = (pieces) =>
  pieces.length
    ? element("span", pieces.flatMap((piece) => [piece, element("wbr", "")]), "name")
    : "";

function hitCells(hit) {
  const { evidence } = hit;
  const pairs = evidence
    ? evidence.pairs
        .slice(0, MOST_PAIRS)
        .map(([l, r, w]) => `${l}=${r} (${decimal(w, 2)})`)
        .join("  ")
    : "";
  const tags = Object.entries(hit.tags)
    .map(([key, value]) => `${key}=${value}`)
    .join("  ");
  const build = [hit.architecture, hit.build || hit.compiler].filter(Boolean).join(" ");
  return [
    [hit.rank, ""],
    [hit.rank_by_distance, ""],
    [decimal(hit.probability, 3), ""],
    [decimal(hit.score, 2), ""],
    [Number(hit.distance.toPrecision(4)), ""],
    [evidence ? percent(evidence.matched_share) : "", ""],
    [named(hit.name_pieces), "wide mono"],
    [named(hit.file_pieces), "wide"],
    [named(hit.shared_pieces), "wide mono"],
    [hit.note ?? "", "wide"],
    [hit.address, "mono"],
    [build, ""],
    [tags, "wide"],
    [pairs, "wide mono"],
  ];
}

/** What is searched, and what it is made of: functions and blocks, or graphs and nodes. */
const { thing, part } = document.querySelector("main").dataset;
const COLUMNS = [
  "#",
  "before",
  "probability",
  "score",
  "distance",
  `${part}s`,
  thing,
  "of",
  "both say",
  "note",
  "address",
  "build",
  "tags",
  `${part} pairs`,
];
function details(item) {
  const rows = pageData[item.number].map(hitCells);
  const used = COLUMNS.map((_, column) => rows.some((cells) => cells[column][0] !== ""));
  const pick = (cells) => cells.filter((_, column) => used[column]);
  const head = element(
    "thead",
    element(
      "tr",
      pick(COLUMNS).map((name) => element("th", name)),
    ),
  );
  const list = rows.map((cells) =>
    element(
      "tr",
      pick(cells).map(([content, style]) => element("td", content, style)),
    ),
  );
  const cell = element(
    "td",
    element("div", element("table", [head, element("tbody", list)]), "scroll"),
  );
  cell.colSpan = heads.length;
  return element("tr", cell, "details");
}

// What rows.js asks of a page.
const CONTROLS = ["filter", "least", "tagged"];
const INCREASING = ["distance", "address"];
function accepts(item) {
  const least = Number(byId("least").value);
  byId("least-value").textContent = least.toFixed(2);
  return (
    (least === 0 || Number(item.key("probability")) >= least) &&
    (!byId("tagged").checked || item.key("tags") !== "")
  );
}
