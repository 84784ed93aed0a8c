// What the library holds: functions of binaries, or graphs of somebody's own. The page is written
// for the first; for the second its own sentences, never anybody's names, take other words.

const WORDS = {
  function: "graph",
  functions: "graphs",
  block: "node",
  blocks: "nodes",
  binary: "file",
  binaries: "files",
};
const PATTERN = new RegExp(`\\b(${Object.keys(WORDS).join("|")})\\b`, "gi");
let ofGraphs = false;

/** Whether the library holds graphs. */
export const holdsGraphs = () => ofGraphs;

/** A sentence or label of the page in the words of what the library holds. */
export const spoken = (text) =>
  ofGraphs && typeof text === "string" ? text.replace(PATTERN, replaced) : text;

function replaced(word) {
  const other = WORDS[word.toLowerCase()];
  return word[0] === word[0].toUpperCase() ? other[0].toUpperCase() + other.slice(1) : other;
}

/** Sets the words once, before the views are made, and rewrites what the page came with. */
export function speakOf(kind) {
  if (kind !== "graphs" || ofGraphs) return;
  ofGraphs = true;
  document.body.dataset.kind = kind;
  for (const place of document.querySelectorAll("[data-graphs]")) {
    place.textContent = place.dataset.graphs;
  }
  for (const place of document.querySelectorAll("[data-graphs-placeholder]")) {
    place.placeholder = place.dataset.graphsPlaceholder;
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) texts.currentNode.data = spoken(texts.currentNode.data);
  for (const name of ["placeholder", "aria-label", "title"]) {
    for (const place of document.querySelectorAll(`[${name}]`)) {
      place.setAttribute(name, spoken(place.getAttribute(name)));
    }
  }
}
