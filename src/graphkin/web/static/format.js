// Numbers and names as people read them.

import { spoken } from "./wording.js";

const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;

/** Spells out characters that would hide or turn text around: a symbol can have any name. */
export const printable = (value) =>
  String(value).replace(
    UNSEEN,
    (letter) => `\\u${letter.codePointAt(0).toString(16).padStart(4, "0")}`,
  );

/** A function's name for people: C++ and Rust names as their sources spell them. */
export const nameOf = (row) => row.demangled ?? row.function;

export const count = (number) => number.toLocaleString("en");

export const plural = (number, one, many = `${one}s`) =>
  `${count(number)} ${spoken(number === 1 ? one : many)}`;

export const baseName = (path) => path.split(/[\\/]/).at(-1) || path;

export function bytes(number) {
  const units = ["bytes", "KB", "MB", "GB"];
  const unit = Math.min(Math.floor(Math.log2(Math.max(number, 1)) / 10), units.length - 1);
  const value = number / 2 ** (10 * unit);
  return `${unit && value < 10 ? value.toFixed(1) : count(Math.round(value))} ${units[unit]}`;
}

export const seconds = (number) => `${number < 10 ? number.toFixed(2) : number.toFixed(0)} s`;

/** Never rounds up to certainty. */
export function probability(value) {
  if (value === null) return "–";
  return value < 1 && value >= 0.9995 ? ">0.999" : value.toFixed(3);
}

/** The same borders as in the reports: an error from 0.9, a warning from 0.5. */
export function severity(value) {
  if (value === null) return "note";
  if (value >= 0.9) return "error";
  return value >= 0.5 ? "warning" : "note";
}

export const percent = (share) =>
  share > 0.99 && share < 1 ? "99%" : `${Math.round(100 * share)}%`;

export const decimal = (value, digits) =>
  value === null || value === undefined ? "" : value.toFixed(digits);

/** "gcc 12.2.0" of "GCC: (Debian 12.2.0-14) 12.2.0"; what is not known to be so is left alone. */
export function compilerName(text) {
  const name = /\b(gcc|clang|icc|rustc|msvc)\b/i.exec(text)?.[1].toLowerCase();
  const version = text.match(/\d+(\.\d+)+/g)?.at(-1);
  return name && version ? `${name} ${version}` : text;
}

/** "x86-64 · gcc 12.2.0": what is known of how code was made, beside where it lies. */
export const made = ({ architecture, compiler }) =>
  [architecture, compilerName(compiler ?? "")].filter(Boolean).join(" · ");

/** Folders that every package has: they tell nothing of the one at hand. */
const COMMON = /^(lib\d*|bin|sbin|usr|local|opt|build|out|obj|src|dist|release|debug|target|\.libs|.*-linux-gnu.*)$/i;

const folderParts = (binary) =>
  binary
    .replace(/\([^()]*\)$/, "")
    .split(/[\\/]/)
    .slice(0, -1);

/**
 * What tells the files of some entries apart: the build of each, which is the name of its folder,
 * with as many folders above as it takes. Those that every package has do not count.
 *
 * `/opt/acme-1.0/lib/libacme.so` and `/opt/acme-1.1/lib/libacme.so` give "acme-1.0/lib" and
 * "acme-1.1/lib". The answer is a map from each entry to its text.
 */
export function builds(entries) {
  const items = entries.map((entry) => {
    const parts = folderParts(entry.binary);
    const own = entry.build ? entry.build.split("/").length : 1;
    const isHere = !entry.build || parts.slice(-own).join("/") === entry.build;
    if (!isHere) return { entry, parts: [entry.build], depth: 1 };
    let depth = own;
    while (depth < parts.length && COMMON.test(parts.at(-depth))) depth += 1;
    return { entry, parts, depth };
  });
  const textOf = ({ parts, depth }) => parts.slice(-depth).join("/");
  for (;;) {
    const groups = new Map();
    for (const item of items) {
      const key = `${baseName(item.entry.binary)}\n${textOf(item)}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(item);
    }
    const unclear = [...groups.values()]
      .filter((group) => new Set(group.map(({ parts }) => parts.join("/"))).size > 1)
      .flat()
      .filter(({ parts, depth }) => depth < parts.length);
    if (!unclear.length) return new Map(items.map((item) => [item.entry, textOf(item)]));
    for (const item of unclear) item.depth += 1;
  }
}

const WHOLE = 28; // letters that are never broken, but between arguments
const ARGUMENTS = /[^\s<(,]*[\s<(,]+|[^\s<(,]+/g;
/** Joints of what is longer: between scopes and folders, between words, and between letters. */
const JOINTS = [
  /(?:(?!::)[^/\\])*(?:::|[/\\])+|(?:(?!::)[^/\\])+/gs,
  /[^_:.=!-]*[_:.=!-]+|[^_:.=!-]+/g,
  /./gsu,
];

/** A name in pieces between which a line may end; reports have the same rule (`line_ends.py`). */
export const pieces = (text) => (text.match(ARGUMENTS) ?? []).flatMap((part) => divided(part, 0));

function divided(part, kind) {
  if (part.length <= WHOLE) return [part];
  const joined = [];
  for (const item of part.match(JOINTS[kind])) {
    if (joined.length && joined.at(-1).length + item.length <= WHOLE) joined.push(joined.pop() + item);
    else joined.push(item);
  }
  return joined.flatMap((item) => divided(item, kind + 1));
}

export const tagTexts = (tags) => Object.entries(tags).map(([key, value]) => `${key}=${value}`);

/** Orders addresses, which may be beyond what a number holds. */
export const addressKey = (address) => (address ?? "").replace(/^0x/, "").padStart(16, "0");

/** What a person typed, as the library's wildcards; part of a text is enough. */
export function wildcard(text) {
  const wanted = text.trim().replaceAll("[", "[[]");
  if (!wanted) return null;
  return /[*?]/.test(wanted) ? wanted : `*${wanted}*`;
}

/** A wildcard that only this text fits. */
export const exactly = (text) => text?.replace(/[[*?]/g, "[$&]") ?? null;

/** The words of a filter box, each of which must be found. */
export const words = (text) => text.toLowerCase().split(/\s+/).filter(Boolean);
