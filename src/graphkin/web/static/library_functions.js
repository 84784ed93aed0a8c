// Functions of the library, page by page.

import { get, withQuery } from "./api.js";
import { empty, failure, fill, make, spinner } from "./dom.js";
import { built, count, tagTexts } from "./format.js";
import { fileName, tagList } from "./hits.js";
import { href } from "./router.js";

const PAGE = 100;
const latest = new WeakMap();

/**
 * Fills `place` with the functions that fit `where`, and a button for more.
 *
 * `actions` gives the elements at the end of each row. `withBinary` shows the file of each.
 */
export async function showLibraryFunctions(place, where, actions, { withBinary = false } = {}) {
  const rows = make("tbody");
  const more = make("button", { type: "button", hidden: true }, "Show more");
  const wait = spinner("reading…");
  // A later question for the same place may be answered first.
  const isLatest = () => latest.get(place) === rows;
  let next = 0;
  latest.set(place, rows);

  async function load() {
    more.hidden = true;
    wait.hidden = false;
    try {
      const page = { ...where, after: next, limit: PAGE };
      const answer = await get(withQuery("/api/library/functions", page));
      if (!isLatest()) return;
      rows.append(...answer.functions.map((entry) => row(entry, actions, withBinary)));
      next = answer.next;
    } catch (error) {
      if (isLatest()) fill(place, failure(error, begin));
      return;
    }
    wait.hidden = true;
    more.hidden = next === null;
    if (!rows.rows.length) fill(place, empty("No function of the library fits."));
  }

  function begin() {
    const table = make("table", { class: "hits entries" }, head(withBinary), rows);
    fill(place, make("div", { class: "fits" }, table), wait, more);
    return load();
  }

  more.addEventListener("click", load);
  await begin();
}

function head(withBinary) {
  const labels = ["function", ...(withBinary ? ["file"] : []), "address", "blocks", "built"];
  const heads = labels.map((label) =>
    make("th", { scope: "col", class: label === "blocks" ? "number" : null }, label),
  );
  const last = make("th", {}, make("span", { class: "unseen" }, "actions"));
  return make("thead", {}, make("tr", {}, heads, last));
}

function row(entry, actions, withBinary) {
  const name = make("span", { class: "mono function-name" }, entry.function);
  const cell = (label, style, ...content) =>
    make("td", { class: style, "data-name": label }, ...content);
  return make(
    "tr",
    {},
    cell(null, "wide", name, tagList(tagTexts(entry.tags))),
    withBinary ? cell("file", "", fileName(entry.binary)) : null,
    cell("address", "mono", entry.address ?? ""),
    cell("blocks", "number", count(entry.blocks)),
    cell("built", "", built(entry)),
    make("td", { class: "act" }, actions(entry)),
  );
}

/** What can be done with an entry on the page of the library. */
export const entryLinks = ({ reference, function: name }) => [
  make(
    "a",
    { class: "button", href: href("search", { query: reference }), "aria-label": `Kin of ${name}` },
    "Kin",
  ),
  make(
    "a",
    {
      class: "button",
      href: href("compare", { left: reference }),
      "aria-label": `Compare ${name} with another function`,
    },
    "Compare…",
  ),
];
