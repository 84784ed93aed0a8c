// The API's reference, drawn by Swagger UI from the server's own schema.
"use strict";
const SCHEMA = new URL("../api/openapi.json", location.href).href;
const dark = matchMedia("(prefers-color-scheme: dark)");

function followTheme() {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
}

function say(text, link) {
  const message = document.createElement("p");
  message.setAttribute("role", "alert");
  message.append(text);
  if (link) {
    const anchor = document.createElement("a");
    anchor.href = new URL("../", location.href).href;
    anchor.textContent = link;
    message.append(" ", anchor);
  }
  // Classes of Swagger UI, whose style sheet is the only one here.
  message.className = "renderedMarkdown wrapper";
  const frame = document.createElement("div");
  frame.className = "swagger-ui";
  frame.append(message);
  document.getElementById("api-docs").replaceChildren(frame);
}

async function start() {
  const answer = await fetch(SCHEMA);
  if (answer.status === 401) {
    say("This server asks for a token.", "Give it on the main page, then come back.");
    return;
  }
  if (!answer.ok) {
    say(`The server answered ${answer.status} instead of the schema; reload the page.`);
    return;
  }
  SwaggerUIBundle({
    spec: await answer.json(),
    dom_id: "#api-docs",
    deepLinking: true,
    // The public validator would be told of this server.
    validatorUrl: null,
    presets: [SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
  });
}

followTheme();
dark.addEventListener("change", followTheme);
start().catch(() => say("The server does not answer; is it still running?"));
