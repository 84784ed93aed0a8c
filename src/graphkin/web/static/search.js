// Search: open a file, see its functions, pick one, see its kin.

import { onStatus } from "./api.js";
import {
  functionsOf,
  functionTable,
  onBinaries,
  showFunctions,
  uploadReference,
} from "./binaries.js";
import { byId, empty, emptyLibrary, failure, fill, gone, make, spinner } from "./dom.js";
import { count, nameOf, plural } from "./format.js";
import { named } from "./hits.js";
import { kinPanel } from "./kin.js";
import { go, href } from "./router.js";
import { binaryFacts, dropZone } from "./uploads.js";
import { holdsGraphs, spoken } from "./wording.js";

const CODE_FILES = "ELF, PE, Mach-O, object files and static archives";
const GRAPH_FILES = "JSON lines, GraphML, GEXF, GML, DOT, or the zip of a TUDataset";

export function searchView() {
  const filter = byId("search-filter");
  let current = {};
  let shownBinary = null;

  const kin = kinPanel((settings) => go("search", { ...current, ...settings }, { replace: true }));
  const table = functionTable(
    (row) => {
      go("search", { ...current, query: null, function: row.number });
      kin.reveal();
    },
    (shown, all) => {
      const part = shown === all ? "" : `${count(shown)} of `;
      fill(byId("search-shown"), part + plural(all, "function"));
    },
  );
  const zone = dropZone({
    title: spoken("Drop a binary here"),
    hint: `${holdsGraphs() ? GRAPH_FILES : CODE_FILES}. It stays on this server.`,
    take: (binary) => {
      // Whoever went elsewhere meanwhile finds it among the recent files.
      if (!byId("search").hidden) go("search", { binary: binary.id });
    },
  });
  fill(byId("search-drop"), zone.element);
  table.filterBy(filter);
  onBinaries(showRecent);
  onStatus(({ functions }) => fill(byId("search-empty"), functions ? null : emptyLibrary()));

  function welcome(notice) {
    shownBinary = null;
    byId("search-welcome").hidden = false;
    byId("search-work").hidden = true;
    fill(byId("search-gone"), notice);
  }

  function work({ withFunctions }) {
    byId("search-welcome").hidden = true;
    byId("search-work").hidden = false;
    byId("search-work").classList.toggle("kin-only", !withFunctions);
  }

  async function open(id) {
    shownBinary = id;
    work({ withFunctions: true });
    fill(byId("search-name"), "…");
    fill(byId("search-facts"));
    fill(byId("search-shown"));
    fill(byId("search-table"), spinner("reading the list of functions…"));
    const { binary, functions } = await functionsOf(id);
    if (current.binary !== id) return null;
    fill(byId("search-name"), named(binary.name));
    fill(byId("search-facts"), binaryFacts(binary));
    byId("search-scan").href = href("scan", { binary: id });
    showSkipped(binary);
    showCoverage(binary);
    filter.value = "";
    table.setFilter("");
    fill(byId("search-table"), table.element);
    showFunctions(table, functions);
    return { binary, functions };
  }

  async function show(params) {
    current = params;
    if (params.query) {
      shownBinary = null;
      work({ withFunctions: false });
      return kin.show(params.query, null, params);
    }
    if (!params.binary) return welcome(null);
    try {
      if (shownBinary !== params.binary && !(await open(params.binary))) return;
      await showPicked(params);
    } catch (error) {
      if (current !== params) return;
      shownBinary = null;
      if (error.status === 404) welcome(gone());
      else fill(byId("search-table"), failure(error, () => show(params)));
    }
  }

  async function showPicked(params) {
    const { binary, functions } = await functionsOf(params.binary);
    const row = params.function === undefined ? null : functions[Number(params.function)];
    if (current !== params) return;
    table.mark(row ? row.number : null);
    document.title = `${row ? `${nameOf(row)} · ` : ""}${binary.name} · graphkin`;
    if (row) {
      const known = { ...row, binary: binary.name };
      await kin.show(uploadReference(params.binary, row.number), known, params);
    } else if (functions.length) {
      kin.showNothing(empty("Pick a function to see its kin."));
    } else {
      kin.showNothing(empty("No functions were found in this file."));
    }
  }

  return {
    show,
    drop(files) {
      if (byId("search-welcome").hidden) go("search", {});
      zone.send(files);
    },
    filter: () => (byId("search-work").hidden ? null : filter),
  };
}

function showSkipped({ skipped, skipped_reasons: reasons }) {
  const place = byId("search-skipped");
  place.hidden = !skipped;
  place.open = false;
  fill(place.querySelector("summary"), `${plural(skipped, "function")} could not be read`);
  fill(place.querySelector("ul"), reasons.map((reason) => make("li", {}, reason)));
}

function showCoverage({ functions, coverage }) {
  const place = byId("search-coverage");
  const code = coverage.reduce((sum, file) => sum + file.code_bytes, 0);
  const recovered = coverage.reduce((sum, file) => sum + file.recovered_bytes, 0);
  const low = coverage.filter((file) => file.is_low);
  place.hidden = !code;
  place.classList.toggle("warning", low.length > 0);
  const share = recovered < code ? (Math.floor((1000 * recovered) / code) / 10).toFixed(1) : 100;
  const text = `${plural(functions, "function")} hold ${share}% of ${count(code)} bytes of code.`;
  const tried = [...new Set(low.flatMap((file) => file.tried))].join(", ");
  fill(place, low.length ? `${text} Others are missing; tried: ${tried}.` : text);
}

function showRecent(binaries) {
  const place = byId("search-recent");
  place.hidden = !binaries.length;
  const items = binaries.map((binary) =>
    make(
      "li",
      {},
      make(
        "a",
        { href: href("search", { binary: binary.id }) },
        make("span", { class: "mono name" }, binary.name),
        make("span", { class: "quiet" }, plural(binary.functions, "function")),
        make("span", { class: "quiet facts-line" }, binaryFacts(binary)),
      ),
    ),
  );
  fill(place.querySelector("ul"), items);
}
