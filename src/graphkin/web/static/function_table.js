// The functions of a file as a table.

import { addressKey, count } from "./format.js";
import { RowTable } from "./table.js";

const COLUMNS = [
  {
    name: "name",
    label: "function",
    key: (row) => row.function,
    text: (row) => row.function,
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

const textOf = (row) => [row.function, row.address, row.member].filter(Boolean).join(" ");

/** A table of a file's functions. */
export const functionTable = (onPick, onShown) =>
  new RowTable({
    label: "Functions",
    columns: COLUMNS,
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
