// What is said where there is nothing to show, in more than one view.

import { make } from "./dom.js";
import { href } from "./router.js";

/** For those who start with nothing: there must be something to find. */
export const emptyLibrary = () =>
  make(
    "p",
    { class: "notice" },
    "The library is empty, so there is nothing to find yet. ",
    make("a", { href: href("library") }, "Add a binary to it"),
    ".",
  );

/** For a link to a file that was dropped to make room, or before a restart. */
export const gone = () =>
  make(
    "div",
    { class: "notice", role: "alert" },
    make("p", {}, "The server no longer has the file of this link. Open it once more."),
  );

/** The same for a scan. */
export const goneScan = () =>
  make(
    "p",
    { class: "notice", role: "alert" },
    "The server no longer has the scan of this link. Start it once more.",
  );
