// Diff: two files, function by function, with progress while it runs.

import { follow, get, post, remove } from "./api.js";
import { onBinaries } from "./binaries.js";
import { showBinaries } from "./chooser.js";
import { diffTable, progressOf } from "./diff_results.js";
import { byId, empty, failure, fill, make, say, spinner } from "./dom.js";
import { go, href } from "./router.js";
import { dropZone } from "./uploads.js";

const RETRY_MS = 2000;
const path = (id, rest = "") => `/api/diffs/${encodeURIComponent(id)}${rest}`;

export function diffView() {
  const form = byId("diff-form");
  const content = byId("diff-content");
  const { left, right } = form.elements;
  let source = null;
  let retry = null;
  let shownId = null;
  let table = null;

  const zone = dropZone({
    title: "or drop both here",
    small: true,
    multiple: true,
    // The newest is the new one, and the one before it the old one.
    take: (binary) => {
      if (right.value && right.value !== binary.id) left.value = right.value;
      right.value = binary.id;
    },
  });
  fill(byId("diff-drop"), zone.element);
  onBinaries((binaries) => {
    const before = { left: left.value, right: right.value };
    for (const select of [left, right]) showBinaries(select, binaries);
    const known = new Set(binaries.map(({ id }) => id));
    if (known.has(before.left)) left.value = before.left;
    if (known.has(before.right)) right.value = before.right;
    else if (binaries.length > 1) left.value = binaries[1].id;
    form.querySelector("[type=submit]").disabled = !binaries.length;
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    begin();
  });

  async function begin() {
    const button = form.querySelector("[type=submit]");
    button.disabled = true;
    fill(byId("diff-refused"));
    try {
      const started = await post("/api/diffs", {
        left: left.value,
        right: right.value,
        by_name: form.elements.by_name.checked,
      });
      go("diff", { diff: started.id });
    } catch (error) {
      fill(byId("diff-refused"), error.message);
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
    if (shownId === id) return;
    fill(content, spinner("opening the diff…"));
    try {
      const state = await get(path(id));
      if (byId("diff").hidden) return;
      table = diffTable({ cancel: () => cancel(id) });
      fill(content, table.element);
      shownId = id;
      update(state);
      listen(id);
    } catch (error) {
      shownId = null;
      fill(content, error.status === 404 ? goneDiff() : failure(error, () => open(id)));
    }
  }

  function listen(id) {
    source = follow(
      path(id, "/events"),
      { progress: update, end: (state) => finish(id, state) },
      {
        lost: () => (retry = setTimeout(() => listen(id), RETRY_MS)),
        broken: () => table.interrupted(),
      },
    );
  }

  async function finish(id, state) {
    stop();
    update(state);
    if (state.state !== "done") return;
    try {
      table.show(await get(path(id, "/report?format=json")));
      say(`The diff is done: ${state.counts.changed} functions changed`);
    } catch (error) {
      table.refuse(error);
    }
  }

  function update(state) {
    table.update(state);
    document.title = `${state.left.name} · ${progressOf(state)} · graphkin`;
    loadRecent();
  }

  async function cancel(id) {
    try {
      await remove(path(id));
    } catch (error) {
      table.refuse(error);
    }
  }

  async function loadRecent() {
    try {
      showRecent(await get("/api/diffs"));
    } catch {
      // The list is a help only; what failed is said where it matters.
    }
  }

  return {
    show(params) {
      loadRecent();
      byId("diff").classList.toggle("opened", Boolean(params.diff));
      if (params.diff) return open(params.diff);
      stop();
      shownId = null;
      fill(content, introduction());
    },
    hide() {
      stop();
      shownId = null;
    },
    drop: (files) => zone.send(files),
    filter: () => (shownId ? table.filter : null),
  };
}

function showRecent(diffs) {
  const place = byId("diff-recent");
  place.hidden = !diffs.length;
  const items = diffs.map((state) =>
    make(
      "li",
      {},
      make(
        "a",
        { href: href("diff", { diff: state.id }) },
        make("span", { class: "mono name" }, `${state.left.name} → ${state.right.name}`),
        make("span", { class: "quiet" }, progressOf(state)),
      ),
    ),
  );
  fill(place.querySelector("ul"), items);
}

const introduction = () =>
  empty(
    "No diff is open.",
    make("p", {}, "Choose two files; what became of each function is listed here."),
  );

/** A notice for a link to a diff that was dropped, or before a restart. */
const goneDiff = () =>
  make(
    "p",
    { class: "notice", role: "alert" },
    "The server no longer has the diff of this link. Start it once more.",
  );
