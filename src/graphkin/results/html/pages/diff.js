"use strict";
function blockCell(block) {
  if (block === null) return element("div", "", "code");
  const [address, count, lines] = block;
  if (!lines.length && count) {
    const what = count === 1 ? "1 equal instruction" : `${count} equal instructions`;
    return element("div", [element("b", address), ` ${what}`], "code");
  }
  const texts = lines.map((line) =>
    Array.isArray(line) ? element("mark", line[0]) : element("span", line),
  );
  return element("div", [element("b", address), ...texts], "code");
}

function details(item) {
  const blocks = pageData[item.number];
  const content = blocks
    ? blocks.map(([kind, left, right]) =>
        element("div", [blockCell(left), blockCell(right)], `pair ${kind}`),
      )
    : "The code of this pair is not in this page.";
  const cell = element("td", element("div", content, "blocks"));
  cell.colSpan = heads.length;
  return element("tr", cell, "details");
}

// What rows.js asks of a page.
const CONTROLS = ["filter", "least"];
const INCREASING = ["alike", "old address", "new address"];
const bars = [...document.querySelectorAll("[data-verdict]")];
const isPressed = (bar) => bar.getAttribute("aria-pressed") === "true";
function accepts(item) {
  const least = Number(byId("least").value);
  byId("least-value").textContent = least.toFixed(2);
  const wanted = bars.filter(isPressed).map((bar) => bar.dataset.verdict);
  return (
    (least === 0 || Number(item.key("probability")) >= least) &&
    (!wanted.length || wanted.includes(item.key("verdict")))
  );
}
for (const bar of bars) {
  bar.addEventListener("click", () => {
    bar.setAttribute("aria-pressed", String(!isPressed(bar)));
    refresh();
  });
}
