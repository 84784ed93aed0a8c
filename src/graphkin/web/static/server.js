// What the server says of itself: its library, its model, its limits.

import { get } from "./api.js";
import { byId, fill } from "./dom.js";
import { baseName, plural } from "./format.js";

const listeners = new Set();
let known = null;

/** The last status; null before the first answer. */
export const status = () => known;

/** Calls `listener` with every new status, and now if there is one. */
export function onStatus(listener) {
  listeners.add(listener);
  if (known) listener(known);
}

export async function loadStatus() {
  known = await get("/api/status");
  const { library, functions, model } = known;
  fill(byId("about"), `${baseName(library)} · ${plural(functions, "function")}`);
  byId("about").title = `${library} · ${model}`;
  fill(byId("help-version"), `Version ${known.version}, model ${model}.`);
  for (const listener of listeners) listener(known);
  return known;
}
