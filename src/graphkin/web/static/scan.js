// Scan: every function of a file against the library, with results while it runs.

import { follow, get, onStatus, post, remove } from "./api.js";
import { onBinaries } from "./binaries.js";
import { showBinaries } from "./chooser.js";
import { byId, empty, emptyLibrary, failure, fill, make, say, spinner } from "./dom.js";
import { plural } from "./format.js";
import { go, href } from "./router.js";
import { progressOf, resultsTable } from "./scan_results.js";
import { dropZone } from "./uploads.js";

const RETRY_MS = 2000;

export function scanView() {
  const form = byId("scan-form");
  const content = byId("scan-content");
  let source = null;
  let retry = null;
  let shownId = null;
  let results = null;
  let recent = [];

  const zone = dropZone({
    title: "or drop one here",
    small: true,
    take: (binary) => (form.elements.binary.value = binary.id),
  });
  fill(byId("scan-drop"), zone.element);
  onBinaries((binaries) => {
    showBinaries(form.elements.binary, binaries);
    form.querySelector("[type=submit]").disabled = !binaries.length;
  });
  onStatus(({ functions, can_rerank: canRerank }) => {
    form.hidden = !functions;
    form.elements.rerank.disabled = !canRerank;
    fill(byId("scan-off"), functions ? null : emptyLibrary());
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });

  async function begin() {
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    fill(byId("scan-refused"));
    try {
      const scan = await post("/api/scans", wanted(form));
      go("scan", { scan: scan.id });
    } catch (error) {
      fill(byId("scan-refused"), error.message);
    }
    button.disabled = false;
  }

  function stop() {
    clearTimeout(retry);
    source?.close();
    source = null;
  }

  async function open(id) {
    stop();
    if (shownId !== id) fill(content, spinner("opening the scan…"));
    try {
      const scan = await get(`/api/scans/${encodeURIComponent(id)}`);
      if (byId("scan").hidden) return;
      if (shownId !== id) {
        results = resultsTable({ cancel: () => cancel(id), again });
        fill(content, results.element);
      }
      shownId = id;
      update(scan);
      listen(id);
    } catch (error) {
      shownId = null;
      fill(content, error.status === 404 ? goneScan() : failure(error, () => open(id)));
    }
  }

  function listen(id) {
    const path = `/api/scans/${encodeURIComponent(id)}/events`;
    source = follow(
      path,
      {
        progress: update,
        results: ({ results: found }) => results.add(found),
        end: (scan) => {
          stop();
          update(scan);
          say(`The scan is over: ${plural(scan.found, "function")} with probable kin`);
        },
      },
      {
        // The server sends all results again to a client that comes late.
        lost: () => (retry = setTimeout(() => open(id), RETRY_MS)),
        broken: () => results.interrupted(),
      },
    );
  }

  function update(scan) {
    results.update(scan);
    document.title = `${scan.binary.name} · ${progressOf(scan)} · graphkin`;
    recent = recent.map((other) => (other.id === scan.id ? scan : other));
    showRecent(recent);
  }

  async function loadRecent() {
    try {
      recent = await get("/api/scans");
      showRecent(recent);
    } catch {
      // The list is a help only; what failed is said where it matters.
    }
  }

  async function cancel(id) {
    try {
      await remove(`/api/scans/${encodeURIComponent(id)}`);
    } catch (error) {
      results.refuse(error);
    }
  }

  function again(scan) {
    form.elements.binary.value = scan.binary.id;
    form.elements.binary.focus();
  }

  return {
    show(params) {
      if (params.binary) form.elements.binary.value = params.binary;
      loadRecent();
      byId("scan").classList.toggle("opened", Boolean(params.scan));
      if (params.scan) return open(params.scan);
      stop();
      shownId = null;
      fill(content, introduction());
    },
    hide: stop,
    drop: (files) => zone.send(files),
    filter: () => (shownId ? results.filter : null),
  };
}

function wanted(form) {
  const number = (name) => Number(form.elements[name].value);
  return {
    binary: form.elements.binary.value,
    top: number("top"),
    rerank: form.elements.rerank.disabled ? 0 : number("rerank"),
    min_probability: number("min_probability"),
    min_blocks: number("min_blocks"),
  };
}

function showRecent(scans) {
  const place = byId("scan-recent");
  place.hidden = !scans.length;
  const items = scans.map((scan) =>
    make(
      "li",
      {},
      make(
        "a",
        { href: href("scan", { scan: scan.id }) },
        make("span", { class: "mono name" }, scan.binary.name),
        make("span", { class: "quiet" }, progressOf(scan)),
        make("span", { class: "quiet facts-line" }, `${plural(scan.found, "function")} found`),
      ),
    ),
  );
  fill(place.querySelector("ul"), items);
}

const introduction = () =>
  empty(
    "No scan is open.",
    make("p", {}, "Choose a file and start a scan; what it finds is listed here while it runs."),
  );

/** A notice for a link to a scan that was dropped, or before a restart. */
const goneScan = () =>
  make(
    "p",
    { class: "notice", role: "alert" },
    "The server no longer has the scan of this link. Start it once more.",
  );
