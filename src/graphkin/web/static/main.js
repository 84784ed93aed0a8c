// The page: starts the views, and shows the one that the address names.

import { onRefused } from "./api.js";
import { loadBinaries } from "./binaries.js";
import { compareView } from "./compare.js";
import { askForToken, logIn, prepareDialogs } from "./dialogs.js";
import { byId, failure, fill } from "./dom.js";
import { watchKeys } from "./keys.js";
import { libraryView } from "./library.js";
import { href, start, takeToken } from "./router.js";
import { scanView } from "./scan.js";
import { searchView } from "./search.js";
import { loadStatus } from "./server.js";
import { acceptDrops } from "./uploads.js";

const TITLES = { search: "Search", compare: "Compare", scan: "Scan", library: "Library" };
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

begin();
