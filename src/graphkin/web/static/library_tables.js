// The files and the functions of a library as tables.

import { get, withQuery } from "./api.js";
import { empty, failure, fill, make, spinner } from "./dom.js";
import { builds, count, exactly, made, nameOf, plural, tagTexts } from "./format.js";
import { buildOf, fileName, named, tagList } from "./hits.js";
import { growing, sorter } from "./lists.js";
import { href } from "./router.js";
import { spoken } from "./wording.js";

const MOST_TAGS = 4;
/** Of each file, what tells it from others of its name. */
const buildTexts = new WeakMap();
const COLUMNS = [
  { name: "file", label: "file", key: (file) => file.name },
  { name: "built", label: "built", key: (file) => `${buildTexts.get(file)} ${made(file)}` },
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
  const drawn = new WeakMap();
  const body = make("tbody");
  const end = make("p", { class: "quiet" }, "more below…");
  const nothing = make("p", { class: "empty" }, "No file fits.");
  const list = growing(body, end, (file) => {
    if (!drawn.has(file)) drawn.set(file, fileRows(file, onRemove));
    return drawn.get(file);
  });
  const order = sorter(COLUMNS, () => list.set(order.sorted(files)), "file");
  const table = make("table", { class: "hits files" }, order.tableHead("actions"), body);
  return {
    element: make("div", { class: "fits" }, table, end, nothing),
    set(others) {
      files = others;
      for (const [file, text] of builds(files)) buildTexts.set(file, text);
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
    make("span", {}, named(file.name)),
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
    cell("built", "", buildOf(file, buildTexts.get(file))),
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
  const element = make("td", { colspan: COLUMNS.length + 1 });
  const details = make("tr", { class: "details" }, element);
  const where = { binary: exactly(file.binary), file_hash: exactly(file.file_hash) };
  showLibraryFunctions(element, where, entryLinks);
  rows[0].after(details);
  rows.push(details);
}

const PAGE = 100;
const latest = new WeakMap();

/**
 * Fills `element` with the functions that fit `where`, and a button for more.
 *
 * `actions` gives the elements at the end of each row. `withBinary` shows the file of each.
 */
export async function showLibraryFunctions(element, where, actions, { withBinary = false } = {}) {
  const rows = make("tbody");
  const more = make("button", { type: "button", hidden: true }, "Show more");
  const wait = spinner("reading…");
  // A later question for the same element may be answered first.
  const isLatest = () => latest.get(element) === rows;
  let next = 0;
  latest.set(element, rows);

  async function load() {
    more.hidden = true;
    wait.hidden = false;
    try {
      const page = { ...where, after: next, limit: PAGE };
      const answer = await get(withQuery("/api/library/functions", page));
      if (!isLatest()) return;
      const texts = builds(answer.functions);
      rows.append(
        ...answer.functions.map((entry) => row(entry, texts.get(entry), actions, withBinary)),
      );
      next = answer.next;
    } catch (error) {
      if (isLatest()) fill(element, failure(error, begin));
      return;
    }
    wait.hidden = true;
    more.hidden = next === null;
    if (!rows.rows.length) fill(element, empty("No function of the library fits."));
  }

  function begin() {
    const table = make("table", { class: "hits entries" }, head(withBinary), rows);
    fill(element, make("div", { class: "fits" }, table), wait, more);
    return load();
  }

  more.addEventListener("click", load);
  await begin();
}

function head(withBinary) {
  const labels = ["function", ...(withBinary ? ["file"] : []), "address", "blocks", "built"];
  const heads = labels.map((label) =>
    make("th", { scope: "col", class: label === "blocks" ? "number" : null }, spoken(label)),
  );
  const last = make("th", {}, make("span", { class: "unseen" }, "actions"));
  return make("thead", {}, make("tr", {}, heads, last));
}

function row(entry, build, actions, withBinary) {
  const name = make("span", { class: "mono function-name", title: entry.function }, named(nameOf(entry)));
  const cell = (label, style, ...content) =>
    make("td", { class: style, "data-name": label }, ...content);
  return make(
    "tr",
    {},
    cell(null, "wide", name, tagList(tagTexts(entry.tags))),
    withBinary ? cell("file", "", fileName(entry.binary)) : null,
    cell("address", "mono", entry.address ?? ""),
    cell("blocks", "number", count(entry.blocks)),
    cell("built", "", buildOf(entry, build)),
    make("td", { class: "act" }, actions(entry)),
  );
}

/** What can be done with an entry on the page of the library. */
export const entryLinks = (entry) => [
  make(
    "a",
    {
      class: "button",
      href: href("search", { query: entry.reference }),
      "aria-label": `Kin of ${nameOf(entry)}`,
    },
    "Kin",
  ),
  make(
    "a",
    {
      class: "button",
      href: href("compare", { left: entry.reference }),
      "aria-label": `Compare ${nameOf(entry)} with another function`,
    },
    "Compare…",
  ),
];
