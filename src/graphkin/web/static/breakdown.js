// What a library holds, by kind, as bars that filter when clicked.

import { fill, make } from "./dom.js";
import { count } from "./format.js";

const MOST = 12;

/**
 * Bars for `counts`, a map from value to number.
 *
 * `chosen` is the value that filters now, and `onChoose` gets another, or null to let go.
 */
export function breakdown(title, counts, chosen, onChoose) {
  const all = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (!all.length) return null;
  const most = all[0][1];
  const bar = ([value, number]) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          class: "share",
          "aria-pressed": String(value === chosen),
          title: value,
          vars: { "--share": number / most },
          on: { click: () => onChoose(value === chosen ? null : value) },
        },
        make("span", {}, value || "unknown"),
        make("span", { class: "quiet" }, count(number)),
      ),
    );
  const list = make("ul", {}, all.slice(0, MOST).map(bar));
  const rest = all.length - MOST;
  const more = make("button", { type: "button", class: "plain" }, `${rest} more`);
  more.addEventListener("click", () => {
    fill(list, all.map(bar));
    more.remove();
  });
  return make("section", { class: "breakdown" }, make("h2", {}, title), list, rest > 0 && more);
}
