// Library: what is in it, by file, architecture and compiler; add and remove.

import { get, loadStatus, post, status } from "./api.js";
import { confirmed } from "./dialogs.js";
import { byId, cautions, empty, failure, fill, make, say, spinner, wide } from "./dom.js";
import { bytes, count, exactly, plural, wildcard, words } from "./format.js";
import { addForm } from "./library_add.js";
import { entryLinks, filesTable, showLibraryFunctions } from "./library_tables.js";
import { holdsGraphs, spoken } from "./wording.js";

const TYPING_MS = 250;
const MOST_BARS = 12;
const FIRST_BINARY = "Add a binary whose functions you know, such as a vulnerable release.";
const HINTS = { files: "Filter by file or tag", functions: "Filter by function name" };

export function libraryView() {
  const content = byId("library-content");
  const adding = addForm(changed);
  let facts = null;
  let files = [];
  let chosen = {};
  let mode = "files";
  let typing = null;

  const filter = make("input", {
    type: "search",
    placeholder: HINTS.files,
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Filter",
  });
  const shown = make("span", { class: "quiet", "aria-live": "polite" });
  const chips = make("div", { class: "chips" });
  const table = filesTable(status().writable ? removeFile : null);
  const functions = make("div");
  const tools = make(
    "div",
    { class: "filter-line" },
    segments(Object.keys(HINTS), (wanted) => {
      mode = wanted;
      filter.placeholder = HINTS[mode];
      refresh();
    }),
    make("label", { class: "grow" }, filter),
    shown,
  );
  byId("library-breakdown").open = wide();
  const notes = cautions(status().warnings);
  fill(byId("library-note"), status().temporary && endsWithServer(), notes);
  fill(byId("library-add"), status().writable ? adding.element : readOnly());
  filter.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(refresh, mode === "files" ? 0 : TYPING_MS);
  });

  async function load() {
    if (!facts) fill(content, spinner("reading the library…"));
    try {
      const [about, list] = await Promise.all([get("/api/library"), get("/api/library/binaries")]);
      facts = about;
      files = list.binaries;
    } catch (error) {
      fill(content, failure(error, load));
      return;
    }
    showFacts(facts);
    if (facts.entries) fill(content, tools, chips, table.element, functions);
    else fill(content, emptyLibrary());
    refresh();
  }

  function refresh() {
    showBreakdown();
    fill(chips, chipsOf(chosen, choose));
    table.element.hidden = mode !== "files";
    functions.hidden = mode !== "functions";
    if (mode === "functions") {
      fill(shown);
      const { architecture, compiler } = chosen;
      const where = { architecture: exactly(architecture), compiler: exactly(compiler) };
      where.function = wildcard(filter.value);
      showLibraryFunctions(functions, where, entryLinks, { withBinary: true });
      return;
    }
    const wanted = words(filter.value);
    const fitting = files.filter((file) => fits(file, wanted, chosen));
    table.set(fitting);
    fill(shown, `${count(fitting.length)} of ${plural(files.length, "file")}`);
  }

  function choose(kind, value) {
    chosen = { ...chosen, [kind]: value };
    refresh();
  }

  function showBreakdown() {
    const kinds = [
      ["architecture", facts.architectures],
      ["compiler", facts.compilers],
      ["build", facts.builds],
      ["tag", facts.tags],
    ];
    const bars = kinds.map(([kind, counts]) =>
      breakdown(`By ${kind}`, counts, chosen[kind], (value) => choose(kind, value)),
    );
    byId("library-breakdown").hidden = !facts.entries;
    fill(byId("library-breakdown").querySelector("div"), bars);
  }

  async function changed() {
    await loadStatus();
    if (!byId("library").hidden) await load();
  }

  async function removeFile(file) {
    const amount = plural(file.functions, "function");
    const agreed = await confirmed({
      title: `Remove ${file.name}?`,
      text: `${amount} of ${file.binary} will be taken out of the library. This cannot be undone.`,
      action: `Remove ${amount}`,
    });
    if (!agreed) return;
    try {
      const { file_hash, binary } = file;
      const { removed } = await post("/api/library/removals", { file_hash, binary });
      say(`${plural(removed, "function")} removed`);
      await changed();
    } catch (error) {
      content.prepend(failure(error));
    }
  }

  return {
    show: load,
    drop: status().writable ? (dropped) => adding.send(dropped) : null,
    filter: () => (filter.isConnected ? filter : null),
  };
}

function showFacts({ library, entries, graphs, binaries, bytes: sizes, model }) {
  const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
  const items = [
    [spoken("functions"), count(entries)],
    ["distinct", count(graphs)],
    ["files", count(binaries)],
    ["on disk", bytes(total)],
    ["model", `${model.name} ${model.version}`],
  ];
  const terms = items.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  fill(byId("library-name"), library);
  fill(byId("library-facts"), terms.map((pair) => make("div", {}, pair)));
}

/** Buttons of which one is chosen. */
function segments(names, onChoose) {
  const choices = names.map((name, index) => {
    const radio = make("input", { type: "radio", name: "mode", value: name, checked: index === 0 });
    radio.addEventListener("change", () => onChoose(name));
    return make("label", {}, radio, spoken(name));
  });
  return make("div", { class: "segments", role: "radiogroup", "aria-label": "List" }, choices);
}

function chipsOf(chosen, choose) {
  const used = Object.entries(chosen).filter(([, value]) => value !== null);
  return used.map(([kind, value]) => {
    const button = make("button", { type: "button", "aria-label": `No filter by ${kind}` }, "×");
    button.addEventListener("click", () => choose(kind, null));
    return make("span", { class: "chip" }, `${kind}: ${value || "unknown"}`, button);
  });
}

function fits(file, wanted, chosen) {
  const text = [file.binary, ...Object.keys(file.tags)].join(" ").toLowerCase();
  const { tag = null, ...kinds } = chosen;
  return (
    wanted.every((word) => text.includes(word)) &&
    (tag === null || tag in file.tags) &&
    Object.entries(kinds).every(([kind, value]) => value === null || file[kind] === value)
  );
}

const readOnly = () =>
  make("p", { class: "notice" }, "This server only reads its library; it cannot be changed here.");

const endsWithServer = () =>
  make(
    "p",
    { class: "notice" },
    "This library ends with the server. To keep one, start it as ",
    make("code", {}, "graphkin serve LIBRARY --create"),
    ".",
  );

const emptyLibrary = () =>
  empty(
    "The library is empty.",
    status().writable
      ? make("p", {}, holdsGraphs() ? "Add a file of graphs." : FIRST_BINARY)
      : make("p", {}, "Fill it with ", make("code", {}, "graphkin index LIBRARY BINARY"), "."),
  );

/**
 * Bars for `counts`, a map from value to number.
 *
 * `chosen` is the value that filters now, and `onChoose` gets another, or null to let go.
 */
function breakdown(title, counts, chosen, onChoose) {
  const all = Object.entries(counts).sort(([, a], [, b]) => b - a);
  if (!all.length) return null;
  const most = all[0][1];
  const bar = ([value, number]) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          class: "share",
          "aria-pressed": String(value === chosen),
          title: value,
          vars: { "--share": number / most },
          on: { click: () => onChoose(value === chosen ? null : value) },
        },
        make("span", {}, value || "unknown"),
        make("span", { class: "quiet" }, count(number)),
      ),
    );
  const list = make("ul", {}, all.slice(0, MOST_BARS).map(bar));
  const rest = all.length - MOST_BARS;
  const more = make("button", { type: "button", class: "plain" }, `${rest} more`);
  more.addEventListener("click", () => {
    fill(list, all.map(bar));
    more.remove();
  });
  return make("section", { class: "breakdown" }, make("h2", {}, title), list, rest > 0 && more);
}
