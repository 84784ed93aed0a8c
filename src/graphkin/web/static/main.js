// The page: starts the views, shows the one that the address names, and watches the keys.

import { loadStatus, onRefused, onStatus } from "./api.js";
import { loadBinaries } from "./binaries.js";
import { compareView } from "./compare.js";
import { askForToken, logIn, prepareDialogs, showHelp } from "./dialogs.js";
import { diffView } from "./diff.js";
import { byId, failure, fill } from "./dom.js";
import { baseName, plural } from "./format.js";
import { libraryView } from "./library.js";
import { href, start, takeToken, VIEWS } from "./router.js";
import { scanView } from "./scan.js";
import { searchView } from "./search.js";
import { acceptDrops } from "./uploads.js";
import { holdsGraphs, speakOf } from "./wording.js";

const TYPING = "input, textarea, select, [contenteditable]";
const TITLES = {
  search: "Search",
  compare: "Compare",
  scan: "Scan",
  diff: "Diff",
  library: "Library",
};
let shown = null;

function showView(views, { view, params }) {
  for (const dialog of document.querySelectorAll("dialog[open]:not(#login)")) dialog.close();
  if (shown && shown !== view) {
    views[shown].hide?.();
    scrollTo(0, 0);
  }
  shown = view;
  document.title = `${TITLES[view]} · graphkin`;
  for (const link of document.querySelectorAll("nav [data-view]")) {
    const here = link.dataset.view === view;
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    // A tab leads back to where a person left it.
    if (here) link.href = href(view, params);
  }
  for (const name of Object.keys(TITLES)) byId(name).hidden = name !== view;
  views[view].show(params);
}

function showStatus({ library, functions, model, version }) {
  fill(byId("about"), `${baseName(library)} · ${plural(functions, "function")}`);
  byId("about").title = `${library} · ${model}`;
  fill(byId("help-version"), `Version ${version}, model ${model}.`);
}

async function logInFromAddress() {
  const token = takeToken();
  if (token === null) return;
  try {
    await logIn(token);
  } catch {
    // The dialog asks for it once the first request is refused.
  }
}

async function begin() {
  onRefused(askForToken);
  onStatus(({ kind }) => speakOf(kind));
  onStatus(showStatus);
  prepareDialogs();
  document.querySelector(".skip").addEventListener("click", (event) => {
    // Without leaving the view: its place in the address is taken.
    event.preventDefault();
    byId("main").focus();
  });
  await logInFromAddress();
  await connect();
}

async function connect() {
  byId("trouble").hidden = true;
  try {
    await Promise.all([loadStatus(), loadBinaries()]);
  } catch (error) {
    byId("trouble").hidden = false;
    fill(byId("trouble"), failure(error, connect));
    return;
  }
  const views = {
    search: searchView(),
    compare: compareView(),
    scan: scanView(),
    diff: diffView(),
    library: libraryView(),
  };
  start((route) => showView(views, route));
  acceptDrops(() => views[shown].drop);
  watchKeys({
    openView: (name) => document.querySelector(`nav [data-view=${name}]`).click(),
    filter: () => views[shown].filter(),
  });
  addEventListener("hashchange", async () => {
    if (!location.hash.startsWith("#token=")) return;
    await logInFromAddress();
    location.reload();
  });
}

/** `openView` goes to a view by name; `filter` gives the filter box of the one that is shown. */
function watchKeys({ openView, filter }) {
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
      const view = VIEWS[Number(event.key) - 1];
      if (view !== "diff" || !holdsGraphs()) openView(view);
    }
  });
}

function clearFilter(event, box) {
  if (event.target !== box || !box?.value) return;
  event.preventDefault();
  box.value = "";
  box.dispatchEvent(new Event("input"));
}

begin();
