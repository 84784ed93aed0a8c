// The files that the server keeps, and their functions as a table.

import { get } from "./api.js";
import { addressKey, count, nameOf } from "./format.js";
import { RowTable } from "./table.js";
import { holdsGraphs, spoken } from "./wording.js";

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
  const answer = lists.get(id) ?? get(`/api/binaries/${encodeURIComponent(id)}/functions`);
  lists.delete(id);
  lists.set(id, answer);
  if (lists.size > MOST_LISTS) lists.delete(lists.keys().next().value);
  answer.catch(() => lists.delete(id));
  return answer;
}

export const uploadReference = (id, number) => `upload:${id}:${number}`;

const COLUMNS = [
  {
    name: "name",
    label: "function",
    key: nameOf,
    text: nameOf,
    class: "name",
  },
  {
    name: "address",
    label: "address",
    key: (row) => addressKey(row.address),
    kind: "code",
    text: (row) => row.address ?? "",
    class: "address",
  },
  {
    name: "blocks",
    label: "blocks",
    title: "Basic blocks of the control flow",
    key: (row) => row.blocks,
    text: (row) => count(row.blocks),
    class: "number blocks",
    kind: "number",
    first: "descending",
  },
  {
    name: "size",
    label: "bytes",
    key: (row) => row.size,
    text: (row) => (row.size === null ? "" : count(row.size)),
    class: "number size",
    kind: "number",
    first: "descending",
  },
  {
    name: "member",
    label: "member",
    key: (row) => row.member,
    text: (row) => row.member ?? "",
    class: "member",
  },
];

/** Of a graph there are edges and a label, where functions have bytes and an address. */
const ofGraphs = (column) =>
  ({
    address: {
      ...column,
      label: "label",
      key: (row) => row.label ?? "",
      kind: "text",
      text: (row) => row.label ?? "",
    },
    size: { ...column, label: "edges", key: (row) => row.edges, text: (row) => count(row.edges) },
    blocks: { ...column, title: "Nodes of the graph" },
  })[column.name] ?? column;

const textOf = (row) => [nameOf(row), row.function, row.address, row.member, row.label].filter(Boolean).join(" ");

/** A table of a file's functions. */
export const functionTable = (onPick, onShown) =>
  new RowTable({
    label: spoken("Functions"),
    columns: holdsGraphs() ? COLUMNS.map(ofGraphs) : COLUMNS,
    keyOf: (row) => row.number,
    textOf,
    onPick,
    onShown,
  });

/** Puts rows into a table, with a column for members where the file has any. */
export function showFunctions(table, functions) {
  table.element.classList.toggle("with-members", functions.some((row) => row.member));
  table.setRows(functions);
}
