// A table whose rows are filtered, sorted, and opened to details. The script ahead of this one has
// CONTROLS, the inputs that filter; INCREASING, columns of numbers whose small ones come first;
// accepts(item); and details(item), the row that a click on the button of a row opens.
const pageData = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const body = byId("rows"),
  heads = [...document.querySelectorAll("main thead th")];
const names = heads.map((head) => head.textContent.trim());
const rows = [...body.rows].map((row) => {
  const cells = [...row.cells];
  cells.forEach((cell, column) => {
    cell.dataset.name = names[column];
  });
  const keys = cells.map((cell) => cell.dataset.key ?? cell.textContent);
  return {
    row,
    number: Number(row.dataset.row),
    details: null,
    text: row.textContent.toLowerCase(),
    keys,
    key: (name) => keys[names.indexOf(name)],
  };
});
let order = rows;

function element(name, content, className) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...[content].flat());
  return made;
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
  const shown = order.filter(
    (item) => accepts(item) && wanted.every((word) => item.text.includes(word)),
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
    const first = numeric && !INCREASING.includes(names[column]) ? "descending" : "ascending";
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
for (const id of CONTROLS) byId(id).addEventListener("input", refresh);
refresh();
