// Keys that work everywhere, unless a person is typing.

import { showHelp } from "./dialogs.js";
import { VIEWS } from "./router.js";

const TYPING = "input, textarea, select, [contenteditable]";

/** `openView` goes to a view by name; `filter` gives the filter box of the one that is shown. */
export function watchKeys({ openView, filter }) {
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") clearFilter(event, filter());
    if (event.target.closest?.(TYPING) || document.querySelector("dialog[open]")) return;
    if (event.key === "?") {
      event.preventDefault();
      showHelp();
    } else if (event.key === "/") {
      const box = filter();
      if (!box) return;
      event.preventDefault();
      box.focus();
      box.select();
    } else if (VIEWS[Number(event.key) - 1]) {
      openView(VIEWS[Number(event.key) - 1]);
    }
  });
}

function clearFilter(event, box) {
  if (event.target !== box || !box?.value) return;
  event.preventDefault();
  box.value = "";
  box.dispatchEvent(new Event("input"));
}
