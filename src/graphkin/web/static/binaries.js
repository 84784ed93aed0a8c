// The files that the server keeps, and their functions.

import { get } from "./api.js";

const MOST_LISTS = 4;
const listeners = new Set();
const lists = new Map();
let kept = null;

/** Calls `listener` with the files whenever they change, and now if they are known. */
export function onBinaries(listener) {
  listeners.add(listener);
  if (kept) listener(kept);
}

export async function loadBinaries() {
  tell(await get("/api/binaries"));
}

/** A file that was just sent is the newest. */
export function addBinary(binary) {
  tell([binary, ...(kept ?? []).filter((other) => other.id !== binary.id)]);
}

function tell(binaries) {
  kept = binaries;
  for (const listener of listeners) listener(kept);
}

/** A file and its functions; the last few answers are kept, for they can be long. */
export function functionsOf(id) {
  const found = lists.get(id) ?? get(`/api/binaries/${encodeURIComponent(id)}/functions`);
  lists.delete(id);
  lists.set(id, found);
  if (lists.size > MOST_LISTS) lists.delete(lists.keys().next().value);
  found.catch(() => lists.delete(id));
  return found;
}

export const uploadReference = (id, number) => `upload:${id}:${number}`;
