// The address bar: every state that a person may want to come back to is a link.

export const VIEWS = ["search", "compare", "scan", "diff", "library"];

let handle = () => {};

/** The link to a view; empty values are left out. */
export function href(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(given.filter(([, value]) => value !== "")).toString();
  // References read better with their colons, and a fragment may hold them.
  return `#/${view}${query ? `?${query.replaceAll("%3A", ":")}` : ""}`;
}

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.includes(path) ? path : "search";
  return { view, params: Object.fromEntries(new URLSearchParams(query)) };
}

/** Goes to a view; `replace` where going back should not stop here. */
export function go(view, params, { replace = false } = {}) {
  const target = href(view, params);
  if (target === location.hash) replace = true;
  history[replace ? "replaceState" : "pushState"](null, "", target);
  handle(parse(target));
}

export function start(handler) {
  handle = handler;
  addEventListener("hashchange", () => {
    if (isRoute(location.hash)) handle(parse(location.hash));
  });
  handle(parse(location.hash));
}

// "#token=" is not a place.
const isRoute = (hash) => hash === "" || hash === "#" || hash.startsWith("#/");

/** Takes the token out of the address, so that it is not copied, kept or shown. */
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token !== null) history.replaceState(null, "", location.pathname);
  return token;
}
