// What a person does, and how the page begins.

sides.forEach((side, which) => {
  const numbers = new Map(side.blocks.map((block, number) => [block, number]));
  const under = (event) => numbers.get(event.target.closest(".block")) ?? null;
  const choose = (number) => {
    hold(which, number);
    const other = best(which, number);
    if (other !== null) reveal(1 - which, other);
  };
  let from = null;
  side.pane.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch" || from) return;
    const number = under(event);
    if ((state.hovered?.number ?? null) === number && state.hovered?.which === which) return;
    state.hovered = number === null ? null : { which, number };
    show();
  });
  side.pane.addEventListener("pointerleave", () => {
    state.hovered = null;
    show();
  });
  side.pane.addEventListener("click", (event) => {
    const number = under(event);
    if (number !== null) choose(number);
  });
  side.pane.addEventListener("keydown", (event) => {
    const number = under(event);
    if (number !== null && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      choose(number);
    }
  });
  side.pane.addEventListener("scroll", redraw, { passive: true });
  side.pane.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button || under(event) !== null) return;
    from = { x: event.clientX + side.pane.scrollLeft, y: event.clientY + side.pane.scrollTop };
    side.pane.classList.add("dragged");
  });
  addEventListener("pointermove", (event) => {
    if (from) side.pane.scrollTo(from.x - event.clientX, from.y - event.clientY);
  });
  addEventListener("pointerup", () => {
    from = null;
    side.pane.classList.remove("dragged");
  });
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    state.held = state.hovered = null;
    show();
  }
});
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
byId("step").addEventListener("input", (event) => {
  state.step = Number(event.target.value);
  recolour();
});
byId("threshold").addEventListener("input", (event) => {
  state.threshold = Number(event.target.value);
  recolour();
});
byId("zoom").addEventListener("input", (event) => {
  state.zoom = Number(event.target.value);
  rescale();
});
byId("links").addEventListener("change", redraw);

// A page that shows this one inside itself says what is compared.
document.body.classList.toggle("framed", window.parent !== window);
place();
rescale();
recolour();
sides.forEach((side, which) => {
  const [x, , w] = side.places.boxes[0];
  side.pane.scrollLeft = (x + w / 2) * state.zoom - side.pane.clientWidth / 2;
});
