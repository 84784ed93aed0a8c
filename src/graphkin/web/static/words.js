// What functions say, as text for people: strings in quotes, names of imports, constants.

const MOST_LETTERS = 60; // of one word
const LEAST_HEXADECIMAL = 1n << 16n;
const PREFIXES = { dat: "table ", off: "offset " };
const TITLES = {
  strings: ["str"],
  imports: ["imp"],
  constants: ["num", "flt"],
  tables: ["dat"],
};

/** The same text as in reports: a long one loses its middle, a large constant is hexadecimal. */
function bare([kind, text]) {
  if (kind === "str") return `"${shortened(text)}"`;
  const isLarge = kind === "num" && /^\d+$/.test(text) && BigInt(text) >= LEAST_HEXADECIMAL;
  return isLarge ? `0x${BigInt(text).toString(16)}` : shortened(text);
}

function shortened(text) {
  const letters = [...text];
  if (letters.length <= MOST_LETTERS) return text;
  const half = MOST_LETTERS / 2;
  return `${letters.slice(0, half - 1).join("")}…${letters.slice(-half).join("")}`;
}

/** Words with imports as the source spells them, which a hit or a block says. */
export const spelledWords = (words, { spelled_imports: spelled }) =>
  words.map(([kind, text]) => [kind, kind === "imp" ? (spelled[text] ?? text) : text]);

/** A word among those of other kinds. */
export const wordText = (word) => (PREFIXES[word[0]] ?? "") + bare(word);

/** The first words with commas between, and how many there are beside them. */
export function wordsLine(words, most) {
  const more = words.length > most ? ` and ${words.length - most} more` : "";
  return words.slice(0, most).map(wordText).join(", ") + more;
}

/** `[title, texts]` of each kind of words that there are; each word once. */
export function titledWords(words) {
  const lists = Object.entries(TITLES).map(([title, kinds]) => {
    const texts = words.filter(([kind]) => kinds.includes(kind)).map(bare);
    return [title, [...new Set(texts)]];
  });
  return lists.filter(([, texts]) => texts.length);
}
