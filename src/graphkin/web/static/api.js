// The server's JSON interface: one way to ask, one kind of error, and its status.

const MOST_TRIES = 3;
const BUSY_SECONDS = 1;
const LONGEST_WAIT = 10;

class ApiError extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

let askForToken = () => Promise.reject(new ApiError(401, "token", "this server asks for a token"));

/** What to do when the server wants a token: a function whose promise ends after the log-in. */
export function onRefused(ask) {
  askForToken = ask;
}

/** The answer to a request; asks for the token, and waits for a busy server, where needed. */
export async function request(path, { method = "GET", body, signal } = {}) {
  for (let tries = 1; ; tries += 1) {
    const response = await send(path, method, body, signal);
    if (response.ok) return response.status === 204 ? null : response.json();
    const error = errorOf(response.status, await response.text());
    if (response.status === 401 && path !== "/api/session") {
      await askForToken();
    } else if (response.status === 503 && tries < MOST_TRIES) {
      await pause(response.headers.get("Retry-After"));
    } else {
      throw error;
    }
  }
}

async function send(path, method, body, signal) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  try {
    return await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw unreachable();
  }
}

const unreachable = () =>
  new ApiError(0, "network", "The server cannot be reached. Is graphkin serve still running?");

/** The error in the text of an answer. */
export function errorOf(status, text) {
  try {
    const { kind, message } = JSON.parse(text).error;
    return new ApiError(status, kind, message);
  } catch {
    return new ApiError(status, "unknown", `The server answered with status ${status}.`);
  }
}

const pause = (header) => {
  const wanted = Math.min(Number(header) || BUSY_SECONDS, LONGEST_WAIT);
  return new Promise((resolve) => setTimeout(resolve, 1000 * wanted));
};

export const get = (path, options) => request(path, options);
export const post = (path, body, options) => request(path, { ...options, method: "POST", body });
export const remove = (path) => request(path, { method: "DELETE" });

/** A path with its query; empty values are left out. */
export function withQuery(path, params) {
  const present = Object.entries(params).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  return `${path}?${new URLSearchParams(present)}`;
}

/** Sends a file; fetch cannot tell how much has gone, so this is an XMLHttpRequest. */
export async function upload(file, { signal, onProgress }) {
  const path = withQuery("/api/binaries", { name: file.name });
  for (;;) {
    const answer = await sendFile(path, file, signal, onProgress);
    if (answer.status === 201 || answer.status === 200) return JSON.parse(answer.responseText);
    if (answer.status !== 401) throw errorOf(answer.status, answer.responseText);
    await askForToken();
  }
}

function sendFile(path, file, signal, onProgress) {
  return new Promise((resolve, reject) => {
    const sent = new XMLHttpRequest();
    sent.open("POST", path);
    sent.setRequestHeader("Content-Type", "application/octet-stream");
    sent.upload.addEventListener("progress", (event) => onProgress(event.loaded / event.total));
    sent.upload.addEventListener("load", () => onProgress(1));
    sent.addEventListener("load", () => resolve(sent));
    sent.addEventListener("error", () => reject(unreachable()));
    sent.addEventListener("abort", () => reject(new DOMException("stopped", "AbortError")));
    signal.addEventListener("abort", () => sent.abort());
    sent.send(file);
  });
}

/**
 * Listens to server-sent events; `handlers` has a function for each name.
 *
 * The browser connects again by itself after a break. `lost` is called when it gives up (the
 * server answered with an error), and `broken` when it tries.
 */
export function follow(path, handlers, { lost, broken }) {
  const source = new EventSource(path);
  for (const [name, handler] of Object.entries(handlers)) {
    source.addEventListener(name, (event) => handler(JSON.parse(event.data)));
  }
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) lost();
    else broken();
  });
  return source;
}

const statusListeners = new Set();
let lastStatus = null;

/** The last status; null before the first answer. */
export const status = () => lastStatus;

/** Calls `listener` with every new status, and now if there is one. */
export function onStatus(listener) {
  statusListeners.add(listener);
  if (lastStatus) listener(lastStatus);
}

export async function loadStatus() {
  lastStatus = await get("/api/status");
  for (const listener of statusListeners) listener(lastStatus);
}
