// Elements from data. Text is only ever set as text, so no name can become markup.

import { printable } from "./format.js";
import { href } from "./router.js";
import { spoken } from "./wording.js";

export const byId = (id) => document.getElementById(id);

/**
 * Makes an element.
 *
 * `options` are attributes, but for `on` (listeners), `vars` (custom properties: the page's policy
 * forbids style attributes) and `data`. False, null and undefined leave an attribute out.
 */
export function make(name, options = {}, ...children) {
  const made = document.createElement(name);
  const { on = {}, vars = {}, data = {}, ...attributes } = options;
  for (const [key, value] of Object.entries(attributes)) {
    if (ABSENT.has(value)) continue;
    made.setAttribute(key, value === true ? "" : printable(value));
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  for (const [property, value] of Object.entries(vars)) made.style.setProperty(property, value);
  Object.assign(made.dataset, data);
  fill(made, ...children);
  return made;
}

const ABSENT = new Set([null, undefined, false]);

/** Replaces what is inside; text is shown with its unseen characters spelled out. */
export function fill(element, ...children) {
  const wanted = children.flat().filter((child) => !ABSENT.has(child));
  element.replaceChildren(
    ...wanted.map((child) => (child instanceof Node ? child : printable(child))),
  );
}

/** Tells people who cannot see the page. */
export function say(text) {
  byId("said").textContent = printable(text);
}

/** Whether there is room beside each other; the style sheets draw the same line. */
export const wide = () => matchMedia("(min-width: 761px)").matches;

export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Copies, and says on the button that it did. */
export async function copyFrom(button, text) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
    say("Copied");
  } catch {
    // No clipboard without https or localhost: let a person take it by hand.
    prompt("Copy this link", text);
  }
  setTimeout(() => (button.textContent = before), 1500);
}

export const spinner = (text) =>
  make(
    "p",
    { class: "waiting" },
    make("span", { class: "spinner", "aria-hidden": "true" }),
    spoken(text),
  );

/** A message in place of content: what is the case, and what to do next. */
export const empty = (title, ...more) =>
  make("div", { class: "empty" }, make("p", { class: "empty-title" }, spoken(title)), ...more);

/** An error with a button to try again, where that can help. */
export function failure(error, again) {
  const button = again && make("button", { type: "button", on: { click: again } }, "Try again");
  const text = make("p", {}, error.message);
  return make("div", { class: "notice error", role: "alert" }, text, button);
}

/** Why results may mean little, a notice for each reason. */
export const cautions = (warnings) =>
  warnings.map((text) =>
    make("p", { class: "notice caution" }, `${text[0].toUpperCase()}${text.slice(1)}.`),
  );

/** A notice for those who start with nothing: there must be something to find. */
export const emptyLibrary = () =>
  make(
    "p",
    { class: "notice" },
    "The library is empty, so there is nothing to find yet. ",
    make("a", { href: href("library") }, spoken("Add a binary to it")),
    ".",
  );

/** A notice for a link to a file that was dropped to make room, or before a restart. */
export const gone = () =>
  make(
    "div",
    { class: "notice", role: "alert" },
    make("p", {}, "The server no longer has the file of this link. Open it once more."),
  );
