// Questions to a person: help, log-in, confirmation.

import { post } from "./api.js";
import { byId, fill } from "./dom.js";

/** Wires the buttons that close a dialog, and closes it on a click beside it. */
export function prepareDialogs() {
  for (const dialog of document.querySelectorAll("dialog")) {
    const needed = dialog.id === "login";
    dialog.addEventListener("click", (event) => {
      if (event.target.closest("[data-close]")) dialog.close();
      if (event.target === dialog && !needed && isBeside(event, dialog)) dialog.close();
    });
  }
  byId("help-button").addEventListener("click", showHelp);
}

function isBeside({ clientX, clientY }, dialog) {
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

export function showHelp() {
  if (!document.querySelector("dialog[open]")) byId("help").showModal();
}

let login = null;

/** Asks for the token until it is right; requests that wait share one dialog. */
export function askForToken() {
  login ??= new Promise((resolve) => {
    const dialog = byId("login");
    const form = dialog.querySelector("form");
    const refusal = dialog.querySelector(".refusal");
    const stay = (event) => event.preventDefault();
    const reopen = () => dialog.showModal();
    const submit = async (event) => {
      event.preventDefault();
      try {
        await logIn(form.elements.token.value);
      } catch (error) {
        fill(refusal, error.status === 401 ? "This is not the token." : error.message);
        form.elements.token.select();
        return;
      }
      form.removeEventListener("submit", submit);
      dialog.removeEventListener("cancel", stay);
      dialog.removeEventListener("close", reopen);
      form.reset();
      fill(refusal);
      dialog.close();
      login = null;
      resolve();
    };
    form.addEventListener("submit", submit);
    dialog.addEventListener("cancel", stay);
    // A browser lets a person close any dialog in the end, but nothing works behind this one.
    dialog.addEventListener("close", reopen);
    dialog.showModal();
  });
  return login;
}

export const logIn = (token) => post("/api/session", { token });

/** Whether a person agrees. */
export function confirmed({ title, text, action }) {
  const dialog = byId("confirm");
  fill(byId("confirm-title"), title);
  fill(byId("confirm-text"), text);
  fill(dialog.querySelector("[data-answer=yes]"), action);
  dialog.showModal();
  return new Promise((resolve) => {
    let agreed = false;
    const answer = (event) => {
      const button = event.target.closest("[data-answer]");
      if (!button) return;
      agreed = button.dataset.answer === "yes";
      dialog.close();
    };
    dialog.addEventListener("click", answer);
    const end = () => {
      dialog.removeEventListener("click", answer);
      resolve(agreed);
    };
    dialog.addEventListener("close", end, { once: true });
  });
}
