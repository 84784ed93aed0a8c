// Adding files to the library: drop, tags, progress, and what became of it.

import { follow, get, post } from "./api.js";
import { cautions, fill, make, say, wide } from "./dom.js";
import { plural } from "./format.js";
import { dropZone } from "./uploads.js";
import { spoken } from "./wording.js";

const RETRY_MS = 2000;

/** The form; `onAdded` is called after the library changed. */
export function addForm(onAdded) {
  const tags = make("input", {
    name: "tags",
    placeholder: "cve=CVE-2014-0160 version=1.0.1f",
    autocomplete: "off",
    spellcheck: "false",
  });
  const least = make("input", { name: "least", type: "number", min: 1, step: 1, value: 5 });
  const refusal = make("p", { class: "refusal", role: "alert" });
  const list = make("ul", { class: "sending", "aria-live": "polite" });
  const zone = dropZone({
    title: "Drop binaries to add",
    multiple: true,
    small: true,
    take: (binary) => add(binary),
  });

  async function add(binary) {
    const note = make("span", { class: "quiet" }, spoken("adding functions…"));
    const bar = make("progress", { "aria-label": `Adding ${binary.name}` });
    const row = make("li", {}, make("span", { class: "mono name" }, binary.name), bar, note);
    list.prepend(row);
    try {
      const addition = await post("/api/library/additions", {
        binary: binary.id,
        tags: parseTags(tags.value),
        min_blocks: Number(least.value) || 1,
      });
      const ended = await ending(addition, (now) => fill(note, outcome(now)));
      bar.remove();
      if (ended.error) throw new Error(ended.error);
      fill(note, outcome(ended));
      row.append(...cautions(ended.warnings));
      say(`${binary.name}: ${outcome(ended)}`);
      await onAdded();
    } catch (error) {
      row.className = "notice error";
      fill(row, make("span", { class: "mono name" }, binary.name), make("p", {}, error.message));
    }
  }

  const check = () => {
    let message = "";
    try {
      parseTags(tags.value);
    } catch (error) {
      message = error.message;
    }
    fill(refusal, message);
    tags.setAttribute("aria-invalid", String(message !== ""));
    return !message;
  };
  tags.addEventListener("change", check);
  const tagsLabel = make("label", {}, spoken("tags for all its functions"), tags);
  const leastLabel = make("label", { class: "of-code" }, "least blocks", least);
  const fields = make("div", { class: "stack" }, tagsLabel, refusal, leastLabel);
  return {
    element: make(
      "details",
      { class: "add", open: wide() },
      make("summary", {}, spoken("Add a binary")),
      fields,
      zone.element,
      list,
    ),
    send: (files) => zone.send(files),
  };
}

/** KEY=VALUE, by spaces or commas. */
function parseTags(text) {
  const pairs = text.split(/[\s,]+/).filter(Boolean);
  const parsed = pairs.map((pair) => {
    const [, key, value] = /^([^=]+)=(.+)$/.exec(pair) ?? [];
    if (!key) throw new Error(`A tag is KEY=VALUE, as in cve=CVE-2014-0160; this is ${pair}.`);
    return [key, value];
  });
  return Object.fromEntries(parsed);
}

/** The addition once it is over; `onProgress` gets it while it runs. */
function ending({ id }, onProgress) {
  const path = `/api/library/additions/${encodeURIComponent(id)}`;
  return new Promise((resolve, reject) => {
    const listen = () => {
      const source = follow(
        `${path}/events`,
        {
          progress: onProgress,
          end: (addition) => {
            source.close();
            resolve(addition);
          },
        },
        {
          lost: () => setTimeout(() => get(path).then(listen, reject), RETRY_MS),
          broken: () => {},
        },
      );
    };
    listen();
  });
}

function outcome({ added, known, small, skipped }) {
  const parts = [
    `${plural(added, "function")} added`,
    known && `${known} known already`,
    small && `${small} too small`,
    skipped && `${skipped} could not be read`,
  ];
  return parts.filter(Boolean).join(", ");
}
