"use strict";
const hits = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const body = byId("rows"),
  heads = [...document.querySelectorAll("main thead th")];
const names = heads.map((head) => head.textContent.trim());
const TAGS = names.indexOf("tags"),
  CHANCE = names.indexOf("probability"),
  MOST_PAIRS = 10;
const rows = [...body.rows].map((row) => {
  const cells = [...row.cells];
  cells.forEach((cell, column) => {
    cell.dataset.name = names[column];
  });
  return {
    row,
    number: Number(row.dataset.row),
    details: null,
    text: row.textContent.toLowerCase(),
    keys: cells.map((cell) => cell.dataset.key ?? cell.textContent),
    tagged: cells[TAGS].textContent !== "",
  };
});
let order = rows;

function element(name, content, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...[content].flat());
  return made;
}

const decimal = (value, digits) => (value === null ? "" : value.toFixed(digits));
const percent = (share) => (share > 0.99 && share < 1 ? "99%" : Math.round(100 * share) + "%");

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
    [hit.demangled ?? hit.function, "wide mono"],
    [hit.binary, "wide"],
    [hit.shared, "wide mono"],
    [hit.note ?? "", "wide"],
    [hit.address, "mono"],
    [build, ""],
    [tags, "wide"],
    [pairs, "wide mono"],
  ];
}

const COLUMNS = [
  "#",
  "before",
  "probability",
  "score",
  "distance",
  "blocks",
  "function",
  "of",
  "both say",
  "note",
  "address",
  "build",
  "tags",
  "block pairs",
];
function details(item) {
  const rows = hits[item.number].map(hitCells);
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
      pick(cells).map(([content, style]) => element("td", String(content), style)),
    ),
  );
  const cell = element(
    "td",
    element("div", element("table", [head, element("tbody", list)]), "scroll"),
  );
  cell.colSpan = heads.length;
  return element("tr", cell, "details");
}

function toggle(item) {
  const button = item.row.querySelector("button"),
    open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) {
    item.details.remove();
    item.details = null;
  } else {
    item.details = details(item);
    item.row.after(item.details);
  }
}

function refresh() {
  const wanted = byId("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const least = Number(byId("least").value),
    tagged = byId("tagged").checked;
  byId("least-value").textContent = least.toFixed(2);
  const shown = order.filter(
    (item) =>
      wanted.every((word) => item.text.includes(word)) &&
      (least === 0 || Number(item.keys[CHANCE]) >= least) &&
      (!tagged || item.tagged),
  );
  body.replaceChildren(
    ...shown.flatMap((item) => (item.details ? [item.row, item.details] : [item.row])),
  );
  byId("shown").textContent = `${shown.length} of ${rows.length} shown`;
}

heads.forEach((head, column) =>
  head.querySelector("button").addEventListener("click", (event) => {
    const numeric = "numeric" in event.target.dataset;
    // Large numbers are the interesting ones, and names read from the start.
    const first =
      numeric && names[column] !== "distance" && names[column] !== "address"
        ? "descending"
        : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const direction = head.getAttribute("aria-sort") === first ? other : first;
    for (const each of heads) each.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    order = [...rows].sort(
      (a, b) =>
        sign *
        (numeric ? a.keys[column] - b.keys[column] : a.keys[column].localeCompare(b.keys[column])),
    );
    refresh();
  }),
);
const owners = new Map(rows.map((item) => [item.row, item]));
body.addEventListener("click", (event) => {
  const item =
    event.target.closest("td:first-child button") && owners.get(event.target.closest("tr"));
  if (item) toggle(item);
});
for (const id of ["filter", "least", "tagged"]) byId(id).addEventListener("input", refresh);
refresh();
