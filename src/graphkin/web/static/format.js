// Numbers and names as people read them.

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
  `${count(number)} ${number === 1 ? one : many}`;

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

/** "x86-64 · gcc-12-O2": what is known of how code was made. */
export const built = ({ architecture, build, compiler }) =>
  [architecture, build || compiler].filter(Boolean).join(" · ");

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
