// The code of one function, and what it says: read only when somebody opens the panel.

import { get } from "./api.js";
import { byId, failure, fill, make, spinner } from "./dom.js";
import { plural } from "./format.js";
import { spelledWords, titledWords } from "./words.js";

const MOST_BLOCKS = 300;
const MOST_WORDS = { head: 40, block: 8 };

/** A panel that shows the code of one function at a time. */
export function codePanel() {
  const panel = byId("kin-code");
  const place = panel.querySelector("div");
  let wanted = null;
  let shown = null;

  async function load() {
    if (!panel.open || wanted === shown) return;
    const reference = (shown = wanted);
    fill(place, spinner("reading the code…"));
    try {
      const code = await get(`/api/functions/${encodeURIComponent(reference)}`);
      const shown = code.kind === "graph" ? [picture(code)] : listing(code);
      if (wanted === reference) fill(place, ...shown);
    } catch (error) {
      if (wanted !== reference) return;
      shown = null;
      fill(place, failure(error, load));
    }
  }

  panel.addEventListener("toggle", load);

  return {
    show(reference) {
      panel.hidden = false;
      wanted = reference;
      return load();
    },
    hide() {
      panel.hidden = true;
      wanted = shown = null;
      fill(place);
    },
  };
}

function picture({ reference, function: name }) {
  const src = `/api/graphs/${encodeURIComponent(reference)}/picture.svg`;
  return make("img", { src, alt: `The graph ${name}`, class: "picture" });
}

function listing({ blocks, edges, text }) {
  const words = blocks.flatMap((block) => spelledWords(block.evidence ?? [], block));
  const leads = new Map();
  for (const { source, target, kind } of edges) {
    const line = `-> ${blocks[target].address}  ${kind}`;
    leads.set(source, [...(leads.get(source) ?? []), line]);
  }
  const shown = blocks.slice(0, MOST_BLOCKS);
  const left = blocks.length - shown.length;
  return [
    wordLists(words),
    text === "mnemonics" && make("p", { class: "quiet" }, "The file is not at hand: mnemonics only."),
    make("div", { class: "blocks" }, shown.map((block, number) => listed(block, leads.get(number)))),
    left > 0 && make("p", { class: "quiet" }, `${plural(left, "more block")}; graphkin show prints all.`),
  ];
}

/** Strings, imports, constants and tables of a whole function. */
function wordLists(words) {
  const lists = titledWords(words);
  if (!lists.length) return null;
  const rows = lists.map(([title, texts]) =>
    make("div", {}, make("dt", {}, title), make("dd", { class: "mono" }, limited(texts, "head"))),
  );
  return make("dl", { class: "words" }, rows);
}

const limited = (texts, where) => {
  const more = texts.length - MOST_WORDS[where];
  return texts.slice(0, MOST_WORDS[where]).join(", ") + (more > 0 ? ` and ${more} more` : "");
};

function listed(block, leads = []) {
  const { address, instructions } = block;
  const said = titledWords(spelledWords(block.evidence ?? [], block)).map(([title, texts]) =>
    make("i", {}, `; ${title} ${limited(texts, "block")}`),
  );
  const lines = [...instructions.map(columns), ...leads].map((line) => make("span", {}, line));
  lines.splice(instructions.length, 0, ...said);
  return make("div", {}, make("b", {}, address), make("pre", {}, lines));
}

function columns(instruction) {
  const [mnemonic, ...operands] = instruction.split(" ");
  return operands.length ? `${mnemonic.padEnd(7)} ${operands.join(" ")}` : mnemonic;
}
