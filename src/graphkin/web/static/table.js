// A table that draws only the rows in sight, so that a hundred thousand scroll like ten.

import { fill, make } from "./dom.js";
import { words } from "./format.js";
import { sorter } from "./lists.js";
import { spoken } from "./wording.js";

const SPARE = 8; // rows drawn beyond both edges, for quick scrolling

/**
 * A grid with one focusable row at a time: arrows move, Enter or a click picks.
 *
 * `columns` are those of `sorter` with `text`, what a cell shows. `keyOf` tells rows apart, and
 * `textOf` is what the filter looks at.
 */
export class RowTable {
  #all = [];
  #shown = [];
  #drawn = new Map();
  #active = 0;
  #picked = null;
  #words = [];

  constructor({ label, columns, keyOf, textOf, onPick, onShown = () => {} }) {
    Object.assign(this, { columns, keyOf, textOf, onPick, onShown });
    this.sorter = sorter(columns, () => this.#refresh());
    this.body = make("div", { class: "rows", role: "rowgroup" });
    this.head = make("div", { class: "head", role: "rowgroup" }, this.#headRow());
    this.note = make("p", { class: "rows-note quiet", hidden: true });
    const attributes = { class: "row-table", role: "grid", "aria-label": label };
    this.element = make("div", attributes, this.head, this.body, this.note);
    this.element.addEventListener("scroll", () => this.#draw(), { passive: true });
    this.body.addEventListener("keydown", (event) => this.#onKey(event));
    this.body.addEventListener("click", (event) => this.#onClick(event));
    new ResizeObserver(() => this.#resize()).observe(this.element);
  }

  /** Shows other rows from the top. */
  setRows(rows) {
    this.#all = rows.map((row) => ({ row, text: this.textOf(row).toLowerCase() }));
    this.#picked = null;
    this.#active = 0;
    this.element.scrollTop = 0;
    this.#refresh();
  }

  setFilter(text) {
    this.#words = words(text);
    this.element.scrollTop = 0;
    this.#active = 0;
    this.#refresh();
  }

  /** Marks a row as picked and brings it into sight; null marks none. */
  mark(key) {
    this.#picked = key;
    const place = this.#shown.findIndex((row) => this.keyOf(row) === key);
    if (place >= 0) {
      this.#active = place;
      this.#reveal(place);
    }
    this.#redraw();
  }

  /** Filters by what a person types in `box`, from which the down arrow leads to the rows. */
  filterBy(box) {
    box.addEventListener("input", () => this.setFilter(box.value));
    box.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowDown") return;
      event.preventDefault();
      this.#focus();
    });
  }

  #headRow() {
    const cells = this.columns.map((column) => {
      const head = make("div", { role: "columnheader", class: column.class });
      this.sorter.attach(head, column);
      return head;
    });
    return make("div", { class: "row", role: "row", "aria-rowindex": 1 }, cells);
  }

  #refresh() {
    const matching = this.#all.filter(({ text }) => this.#words.every((word) => text.includes(word)));
    this.#shown = this.sorter.sorted(matching.map(({ row }) => row));
    const place = this.#shown.findIndex((row) => this.keyOf(row) === this.#picked);
    this.#active = Math.max(place, 0);
    this.element.setAttribute("aria-rowcount", this.#shown.length + 1);
    this.note.hidden = this.#shown.length > 0;
    fill(this.note, spoken(this.#all.length ? "No function matches the filter." : "No functions."));
    this.onShown(this.#shown.length, this.#all.length);
    this.#resize();
  }

  #resize() {
    // The style sheet decides the height: rows are taller where fingers touch them.
    this.rowHeight = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 30;
    this.body.style.height = `${this.#shown.length * this.rowHeight}px`;
    this.#redraw();
  }

  #redraw() {
    const focused = this.body.contains(document.activeElement);
    this.#drawn.clear();
    this.body.replaceChildren();
    this.#draw();
    if (focused) this.#focus();
  }

  #draw() {
    const top = this.element.scrollTop;
    const first = Math.max(Math.floor(top / this.rowHeight) - SPARE, 0);
    const last = Math.ceil((top + this.element.clientHeight) / this.rowHeight) + SPARE;
    const wanted = new Set();
    for (let place = first; place < Math.min(last, this.#shown.length); place += 1) {
      wanted.add(place);
    }
    // The active row stays, wherever it is, or scrolling would lose the focus.
    if (this.#active < this.#shown.length) wanted.add(this.#active);
    for (const [place, row] of this.#drawn) {
      if (!wanted.has(place)) {
        row.remove();
        this.#drawn.delete(place);
      }
    }
    for (const place of wanted) {
      if (!this.#drawn.has(place)) this.#drawn.set(place, this.#add(place));
    }
  }

  #add(place) {
    const row = this.#shown[place];
    const cells = this.columns.map((column) =>
      make("div", { role: "gridcell", class: column.class }, column.text(row)),
    );
    const attributes = {
      class: "row",
      role: "row",
      tabindex: place === this.#active ? 0 : -1,
      "aria-rowindex": place + 2,
      "aria-selected": String(this.keyOf(row) === this.#picked),
      data: { place },
    };
    const made = make("div", attributes, cells);
    made.style.top = `${place * this.rowHeight}px`;
    made.title = cells[0].textContent;
    this.body.append(made);
    return made;
  }

  #onClick(event) {
    const row = event.target.closest(".row");
    if (row) this.#pick(Number(row.dataset.place));
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(Math.floor(this.#viewHeight() / this.rowHeight) - 1, 1);
    const last = this.#shown.length - 1;
    const targets = {
      ArrowDown: this.#active + 1,
      ArrowUp: this.#active - 1,
      PageDown: this.#active + page,
      PageUp: this.#active - page,
      Home: 0,
      End: last,
    };
    if (event.key in targets) {
      event.preventDefault();
      this.#move(Math.min(Math.max(targets[event.key], 0), last));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.#pick(this.#active);
    }
  }

  #move(place) {
    this.#drawn.get(this.#active)?.setAttribute("tabindex", -1);
    this.#active = place;
    this.#reveal(place);
    this.#draw();
    this.#focus();
  }

  #focus() {
    const row = this.#drawn.get(this.#active);
    row?.setAttribute("tabindex", 0);
    row?.focus({ preventScroll: true });
  }

  #pick(place) {
    const row = this.#shown[place];
    if (!row) return;
    this.#active = place;
    this.#picked = this.keyOf(row);
    this.#redraw();
    this.#focus();
    this.onPick(row);
  }

  #viewHeight() {
    return this.element.clientHeight - this.head.offsetHeight;
  }

  #reveal(place) {
    const top = place * this.rowHeight;
    const { element } = this;
    if (top < element.scrollTop) element.scrollTop = top;
    const below = top + this.rowHeight - this.#viewHeight();
    if (below > element.scrollTop) element.scrollTop = below;
  }
}
