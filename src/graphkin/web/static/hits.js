// Hits as a table: how probable, what, where, how it was made, and a link to look at it.

import { make } from "./dom.js";
import {
  baseName,
  builds,
  count,
  decimal,
  made,
  nameOf,
  percent,
  pieces,
  printable,
  probability,
  severity,
  tagTexts,
} from "./format.js";
import { href } from "./router.js";
import { holdsGraphs, spoken } from "./wording.js";
import { spelledWords, wordsLine } from "./words.js";

const MOST_WORDS = 4; // of what both say

/** A probability with its colour and a bar. */
export function probabilityBar(value) {
  const bar = make("i", { class: "bar", "aria-hidden": "true", vars: { "--share": value ?? 0 } });
  return make("span", { class: `probability ${severity(value)}` }, probability(value), bar);
}

/** A name whose lines end only at its joints. */
export const named = (text) =>
  pieces(printable(text)).flatMap((piece, number) => [
    number ? make("wbr") : null,
    make("span", { class: "whole" }, piece),
  ]);

export const tagList = (texts) =>
  texts.length
    ? make("span", { class: "tags" }, texts.map((text) => make("b", {}, named(text))))
    : null;

/** The file of an entry by its base name; the whole path is shown on pointing. */
export const fileName = (binary) => make("span", { title: binary }, named(baseName(binary)));

/** Where an entry was built, and by what; `text` tells it from the others, see `builds`. */
export const buildOf = (entry, text) => [
  make("span", { class: "build", title: entry.binary }, named(text || entry.compiler)),
  make("span", { class: "quiet of" }, madeParts(text ? entry : { ...entry, compiler: "" })),
];

/** Architecture and compiler; a line may end between them, and not inside "x86-64". */
const madeParts = (entry) =>
  made(entry)
    .split(/(?<= · )/)
    .map((part) => make("span", { class: "whole" }, part));

export function compareLink(left, right, name) {
  const target = href("compare", { left, right });
  const label = `Compare with ${name}`;
  return make("a", { class: "button", href: target, "aria-label": label }, "Compare");
}

const COLUMNS = [
  ["#", "", (hit) => hit.rank, "rank"],
  ["probability", "That both are the same function, compiled in different ways", (hit) =>
    hit.probability === null ? null : probabilityBar(hit.probability)],
  ["function", "", (hit) => name(hit), "wide"],
  ["built", "Folder of the file, architecture and compiler", (hit, texts) =>
    holdsGraphs() ? null : buildOf(hit, texts.get(hit))],
  ["label", "The class of the graph", (hit) => (holdsGraphs() ? (hit.tags.label ?? null) : null)],
  ["value", "What the model predicts, in the unit of its targets", (hit) =>
    decimal(hit.value, 3), "number"],
  ["score", "After reranking: higher is closer", (hit) => decimal(hit.score, 2), "number"],
  ["distance", "Before reranking: lower is closer", (hit) =>
    Number(hit.distance.toPrecision(4)), "number"],
  ["before", "Rank by distance alone", (hit) => hit.rank_by_distance, "number"],
  ["blocks", "Blocks of the function", (hit) => hit.blocks, "number spare"],
  ["matched", "Share of the blocks that have a partner", (hit) =>
    hit.evidence ? percent(hit.evidence.matched_share) : null, "number"],
];

function name(hit) {
  return [
    make("span", { class: "mono function-name", title: hit.function }, named(nameOf(hit))),
    make("span", { class: "quiet of" }, fileName(hit.binary), hit.address && ` · ${hit.address}`),
    tagList(tagTexts(otherTags(hit))),
    ...remarks(hit),
  ];
}

/** The class of a graph has a column. */
function otherTags({ tags }) {
  const { label, ...others } = tags;
  return holdsGraphs() ? others : tags;
}

/** What the query and a hit both say, and why the probability is what it is. */
export const remarks = (hit) => [
  hit.shared.length > 0 && bothSay(spelledWords(hit.shared, hit)),
  hit.note && make("span", { class: "quiet note-line" }, hit.note),
];

const bothSay = (words) =>
  make(
    "span",
    { class: "said", title: `both say ${wordsLine(words, words.length)}` },
    make("span", { class: "quiet" }, "both say "),
    named(wordsLine(words, MOST_WORDS)),
  );

/** The table; columns without any value are left out. */
export function hitsTable(hits, query) {
  const texts = builds(hits);
  const cells = hits.map((hit) => COLUMNS.map(([, , value]) => value(hit, texts)));
  const used = COLUMNS.map((_, column) =>
    cells.some((row) => row[column] !== null && row[column] !== "" && row[column] !== undefined),
  );
  const pick = (row) => row.filter((_, column) => used[column]);
  const heads = pick(COLUMNS).map(([label, title, , style]) => {
    const aligned = style?.startsWith("number") && style;
    const about = { scope: "col", title: spoken(title) || null, class: aligned };
    return make("th", about, spoken(label));
  });
  const rows = hits.map((hit, number) =>
    make(
      "tr",
      {},
      pick(cells[number].map((value, column) => cell(COLUMNS[column], value))),
      make("td", { class: "act" }, compareLink(query, hit.reference, nameOf(hit))),
    ),
  );
  const last = make("th", { scope: "col" }, make("span", { class: "unseen" }, "compare"));
  const head = make("thead", {}, make("tr", {}, heads, last));
  const table = make("table", { class: "hits" }, head, make("tbody", {}, rows));
  return make("div", { class: "fits" }, table);
}

// The function's name needs no label where rows are cards.
const cell = ([label, , , style], value) =>
  make("td", { class: style, "data-name": style !== "wide" && spoken(label) }, value ?? "");

/** "10 kin", with the most probable one named for people who cannot see the table. */
export function summary(hits) {
  if (!hits.length) return "No kin found";
  const [best] = hits;
  const sure = best.probability === null ? "" : `, probability ${probability(best.probability)}`;
  return `${count(hits.length)} kin; the first is ${nameOf(best)}${sure}`;
}
