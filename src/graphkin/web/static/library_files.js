// The files of a library as a table: each opens to its functions, and can be removed.

import { make } from "./dom.js";
import { built, count, exactly, plural } from "./format.js";
import { growing } from "./growing.js";
import { tagList } from "./hits.js";
import { entryLinks, showLibraryFunctions } from "./library_functions.js";
import { sorter } from "./sorting.js";

const MOST_TAGS = 4;
const COLUMNS = [
  { name: "file", label: "file", key: (file) => file.name },
  { name: "built", label: "built", key: built },
  {
    name: "functions",
    label: "functions",
    key: (file) => file.functions,
    kind: "number",
    first: "descending",
    class: "number",
  },
  { name: "tags", label: "tags", key: (file) => Object.keys(file.tags).join(" ") || null },
];

/** The table; `onRemove` gets a file, and is null where the library cannot be changed. */
export function filesTable(onRemove) {
  let files = [];
  const made = new WeakMap();
  const body = make("tbody");
  const end = make("p", { class: "quiet" }, "more below…");
  const nothing = make("p", { class: "empty" }, "No file fits.");
  const list = growing(body, end, (file) => {
    if (!made.has(file)) made.set(file, fileRows(file, onRemove));
    return made.get(file);
  });
  const order = sorter(COLUMNS, () => list.set(order.sorted(files)), "file");
  const table = make("table", { class: "hits files" }, order.tableHead("actions"), body);
  return {
    element: make("div", { class: "fits" }, table, end, nothing),
    set(others) {
      files = others;
      table.hidden = !files.length;
      nothing.hidden = files.length > 0;
      list.set(order.sorted(files));
    },
  };
}

/** The row of a file, followed by its functions while it is open. */
function fileRows(file, onRemove) {
  const rows = [];
  const button = make(
    "button",
    { type: "button", class: "expand mono", "aria-expanded": "false", title: file.binary },
    file.name,
  );
  const tags = Object.entries(file.tags).map(([tag, number]) =>
    number === file.functions ? tag : `${tag} (${count(number)})`,
  );
  const rest = tags.length - MOST_TAGS;
  const more = rest > 0 ? make("span", { class: "quiet" }, ` and ${plural(rest, "other")}`) : null;
  const cell = (name, style, ...content) =>
    make("td", { class: style, "data-name": name }, ...content);
  const row = make(
    "tr",
    {},
    cell(null, "wide", button),
    cell("built", "", built(file)),
    cell("functions", "number", count(file.functions)),
    cell(null, "", tagList(tags.slice(0, MOST_TAGS)), more),
    make("td", { class: "act" }, onRemove ? removeButton(file, onRemove) : null),
  );
  button.addEventListener("click", () => toggle(file, rows, button));
  rows.push(row);
  return rows;
}

function removeButton(file, onRemove) {
  const button = make("button", { type: "button", "aria-label": `Remove ${file.name}` }, "Remove");
  button.addEventListener("click", () => onRemove(file));
  return button;
}

function toggle(file, rows, button) {
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", String(!open));
  if (open) {
    rows.pop().remove();
    return;
  }
  const place = make("td", { colspan: COLUMNS.length + 1 });
  const details = make("tr", { class: "details" }, place);
  const where = { binary: exactly(file.binary), file_hash: exactly(file.file_hash) };
  showLibraryFunctions(place, where, entryLinks);
  rows[0].after(details);
  rows.push(details);
}
