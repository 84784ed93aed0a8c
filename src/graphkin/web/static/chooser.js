// A dialog to choose one function: of an opened file, or of the library.

import {
  functionsOf,
  functionTable,
  onBinaries,
  showFunctions,
  uploadReference,
} from "./binaries.js";
import { byId, empty, failure, fill, make, spinner } from "./dom.js";
import { nameOf, plural, wildcard } from "./format.js";
import { showLibraryFunctions } from "./library_tables.js";
import { dropZone } from "./uploads.js";

const TYPING_MS = 250;

/** The dialog; `open` calls back with the reference that was chosen. */
export function chooser() {
  const dialog = byId("chooser");
  const binary = byId("chooser-binary");
  const filter = byId("chooser-filter");
  const list = byId("chooser-list");
  const sources = [...dialog.querySelectorAll("[name=from]")];
  let onChosen = () => {};
  let typing = null;

  const table = functionTable(
    (row) => choose(uploadReference(binary.value, row.number)),
    () => {},
  );
  const zone = dropZone({
    title: "Open another file",
    small: true,
    take: (added) => {
      binary.value = added.id;
      refresh();
    },
  });
  fill(byId("chooser-drop"), zone.element);
  onBinaries((binaries) => showBinaries(binary, binaries));
  binary.addEventListener("change", refresh);
  for (const radio of sources) radio.addEventListener("change", refresh);
  filter.addEventListener("input", () => {
    if (from() === "upload") return table.setFilter(filter.value);
    clearTimeout(typing);
    typing = setTimeout(refresh, TYPING_MS);
  });

  const from = () => sources.find((radio) => radio.checked).value;

  function choose(reference) {
    dialog.close();
    onChosen(reference);
  }

  function refresh() {
    const uploads = from() === "upload";
    binary.closest("label").hidden = !uploads;
    byId("chooser-drop").hidden = !uploads;
    return uploads ? showUpload() : showLibrary();
  }

  async function showUpload() {
    const id = binary.value;
    if (!id) return fill(list, empty("No file is open yet."));
    fill(list, spinner("reading the list of functions…"));
    try {
      const { functions } = await functionsOf(id);
      if (binary.value !== id || from() !== "upload") return;
      fill(list, table.element);
      showFunctions(table, functions);
      table.setFilter(filter.value);
    } catch (error) {
      fill(list, failure(error, refresh));
    }
  }

  function showLibrary() {
    const where = { function: wildcard(filter.value) };
    return showLibraryFunctions(list, where, (entry) => chooseButton(entry), { withBinary: true });
  }

  function chooseButton(entry) {
    const label = `Choose ${nameOf(entry)}`;
    const button = make("button", { type: "button", "aria-label": label }, "Choose");
    button.addEventListener("click", () => choose(entry.reference));
    return button;
  }

  return {
    open(title, chosen) {
      onChosen = chosen;
      fill(byId("chooser-title"), title);
      filter.value = "";
      dialog.showModal();
      filter.focus();
      refresh();
    },
    /** Opens files that were dropped. */
    send(files) {
      sources[0].checked = true;
      refresh();
      zone.send(files);
    },
  };
}

/** Fills a list of files to choose from, and keeps what was chosen. */
export function showBinaries(select, binaries) {
  const before = select.value;
  const known = new Set(Array.from(select.options, (option) => option.value));
  const options = binaries.map((binary) =>
    make("option", { value: binary.id }, binary.name, ` (${plural(binary.functions, "function")})`),
  );
  fill(select, options.length ? options : make("option", { value: "" }, "none yet"));
  // The list begins with the newest: one that was just opened is most likely meant.
  const isNew = binaries.length && !known.has(binaries[0].id);
  if (!isNew && binaries.some(({ id }) => id === before)) select.value = before;
}
