// Getting a file to the server: by dropping it, by a button, with progress.

import { status, upload } from "./api.js";
import { addBinary } from "./binaries.js";
import { byId, fill, make, say } from "./dom.js";
import { bytes, plural } from "./format.js";
import { spoken } from "./wording.js";

/**
 * A place to drop files on or to choose them by.
 *
 * `take` gets the binary that the server made of each file. `send` takes files from elsewhere.
 */
export function dropZone({ title, hint = "", take, multiple = false, small = false }) {
  const input = make("input", { type: "file", class: "unseen", multiple });
  const zone = make(
    "label",
    { class: small ? "drop small" : "drop" },
    input,
    make("span", { class: "drop-title" }, title),
    make("span", { class: "button" }, multiple ? "Choose files" : "Choose a file"),
    hint && make("span", { class: "quiet" }, hint),
  );
  const list = make("ul", { class: "sending" });
  const send = async (files) => {
    for (const file of multiple ? files : files.slice(0, 1)) {
      const binary = await sendOne(file, list);
      if (binary) await take(binary);
    }
  };
  input.addEventListener("change", () => {
    const files = [...input.files];
    // So that the same file can be chosen again after it failed.
    input.value = "";
    send(files);
  });
  return { element: make("div", { class: "drop-place" }, zone, list), send };
}

/** Sends one file and shows how far it is; null if it could not be read. */
async function sendOne(file, list) {
  const stop = new AbortController();
  const bar = make("progress", { max: 1, value: 0, "aria-label": `Sending ${file.name}` });
  const note = make("span", { class: "quiet" }, "sending…");
  const cancel = make("button", { type: "button", class: "plain" }, "Cancel");
  const name = make("span", { class: "mono name" }, file.name);
  const row = make("li", {}, make("div", { class: "title-line" }, name, cancel), bar, note);
  cancel.addEventListener("click", () => stop.abort());
  list.append(row);
  try {
    refuseTooLarge(file);
    const binary = await upload(file, {
      signal: stop.signal,
      onProgress: (share) => showProgress(share, file, bar, note),
    });
    row.remove();
    addBinary(binary);
    say(`${binary.name}: ${plural(binary.functions, "function")}`);
    return binary;
  } catch (error) {
    if (error.name === "AbortError") row.remove();
    else showFailure(row, name, error);
    return null;
  }
}

function showProgress(share, file, bar, note) {
  if (share < 1) {
    bar.value = share;
    fill(note, `${bytes(share * file.size)} of ${bytes(file.size)}`);
  } else {
    bar.removeAttribute("value");
    const limit = status()?.limits.extraction_seconds;
    fill(note, spoken(`reading functions…${limit ? ` (at most ${limit} s)` : ""}`));
  }
}

function showFailure(row, name, error) {
  const dismiss = make("button", { type: "button", class: "plain" }, "Dismiss");
  dismiss.addEventListener("click", () => row.remove());
  row.className = "notice error";
  row.setAttribute("role", "alert");
  fill(row, make("div", { class: "title-line" }, name, dismiss), make("p", {}, error.message));
}

function refuseTooLarge(file) {
  const most = status()?.limits.upload_bytes;
  if (most && file.size > most) {
    throw new Error(`It has ${bytes(file.size)}, and this server takes at most ${bytes(most)}.`);
  }
}

/** Lets files be dropped anywhere; `taker` gives the function that takes them right now. */
export function acceptDrops(taker) {
  const veil = byId("veil");
  const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
  const modal = () => document.querySelector("dialog[open]");
  addEventListener("dragover", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    const wanted = taker() && !modal();
    event.dataTransfer.dropEffect = wanted ? "copy" : "none";
    veil.hidden = !wanted;
  });
  addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) veil.hidden = true;
  });
  addEventListener("drop", (event) => {
    if (!holdsFiles(event)) return;
    event.preventDefault();
    veil.hidden = true;
    if (!modal()) taker()?.([...event.dataTransfer.files]);
  });
}

/** A line with what is known of a file. */
export const binaryFacts = (binary) =>
  [binary.format?.toUpperCase(), binary.architecture, binary.compiler, bytes(binary.bytes)]
    .filter(Boolean)
    .join(" · ");
