// Long lists: sorted by a column, and drawn as a person comes near their rows.

import { make } from "./dom.js";
import { spoken } from "./wording.js";

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

/**
 * A sorter over columns `{ name, label, key, kind, first }`.
 *
 * `key` gives what a row is sorted by (null sorts last), `kind` how keys compare (as a "name", a
 * "number", or letter by letter as a "code"), and `first` the direction of the first click: large
 * numbers are the interesting ones, and names read from the start.
 */
export function sorter(columns, onChange, initial = null) {
  let column = columns.find(({ name }) => name === initial) ?? null;
  let sign = column ? firstSign(column) : 1;
  const heads = new Map();

  const mark = () => {
    for (const [each, head] of heads) {
      if (each === column) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
  };
  const choose = (wanted) => {
    sign = wanted === column ? -sign : firstSign(wanted);
    column = wanted;
    mark();
    onChange();
  };
  return {
    /** The content of a head; `head` is the element that carries aria-sort. */
    attach(head, each) {
      if (!each.key) return head.append(spoken(each.label));
      const button = make("button", { type: "button", title: spoken(each.title) }, spoken(each.label));
      button.addEventListener("click", () => choose(each));
      head.append(button);
      heads.set(each, head);
      mark();
    },
    /** The head of a table, with a last column whose name is not shown. */
    tableHead(lastName) {
      const cells = columns.map((column) => {
        const head = make("th", { scope: "col", class: column.class });
        this.attach(head, column);
        return head;
      });
      const last = make("th", { scope: "col" }, make("span", { class: "unseen" }, lastName));
      return make("thead", {}, make("tr", {}, cells, last));
    },

    sorted(rows) {
      return column ? sortBy(rows, column, sign) : rows;
    },
  };
}

const firstSign = ({ first }) => (first === "descending" ? -1 : 1);

const ORDERS = {
  number: (a, b) => a - b,
  name: collator.compare,
  code: (a, b) => (a < b ? -1 : Number(a > b)),
};

function sortBy(rows, { key, kind = "name" }, sign) {
  const keyed = rows.map((row) => [key(row), row]);
  const order = ORDERS[kind];
  keyed.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * order(a, b);
  });
  return keyed.map(([, row]) => row);
}

const STEP = 100;
const AHEAD = "600px";

/**
 * Shows the first rows of a list in `body`, and more when `end`, which follows it, nears the view.
 *
 * `rowsOf` gives the elements of an item, and may give the same ones again: what a person opened
 * in them stays so when the list is sorted or filtered.
 */
export function growing(body, end, rowsOf) {
  let items = [];
  let wanted = STEP;
  const draw = () => {
    arrange(body, items.slice(0, wanted).flatMap(rowsOf));
    end.hidden = wanted >= items.length;
  };
  const grow = ([entry]) => {
    if (!entry.isIntersecting || end.hidden) return;
    const before = wanted;
    wanted += STEP;
    body.append(...items.slice(before, wanted).flatMap(rowsOf));
    end.hidden = wanted >= items.length;
    // Seen anew, in case the added rows did not push it out of sight.
    observer.unobserve(end);
    observer.observe(end);
  };
  const observer = new IntersectionObserver(grow, { rootMargin: AHEAD });
  observer.observe(end);
  return {
    /** Other items, from the top, or in place where `keep` is true. */
    set(others, { keep = false } = {}) {
      items = others;
      if (!keep) wanted = STEP;
      draw();
    },
  };
}

/** Puts rows in order; one that is in its place is not touched, and so keeps focus and clicks. */
function arrange(body, rows) {
  let next = body.firstChild;
  for (const row of rows) {
    if (row === next) next = row.nextSibling;
    else body.insertBefore(row, next);
  }
  while (next) {
    const unwanted = next;
    next = next.nextSibling;
    unwanted.remove();
  }
}
