// A long list whose rows are made as a person comes near them.

const STEP = 100;
const AHEAD = "600px";

/**
 * Shows the first rows of a list in `body`, and more when `end`, which follows it, nears the view.
 *
 * `rowsOf` gives the elements of an item, and may give the same ones again: what a person opened
 * in them stays so when the list is sorted or filtered.
 */
export function growing(body, end, rowsOf) {
  let items = [];
  let wanted = STEP;
  const draw = () => {
    arrange(body, items.slice(0, wanted).flatMap(rowsOf));
    end.hidden = wanted >= items.length;
  };
  const grow = ([entry]) => {
    if (!entry.isIntersecting || end.hidden) return;
    const before = wanted;
    wanted += STEP;
    body.append(...items.slice(before, wanted).flatMap(rowsOf));
    end.hidden = wanted >= items.length;
    // Seen anew, in case the added rows did not push it out of sight.
    observer.unobserve(end);
    observer.observe(end);
  };
  const observer = new IntersectionObserver(grow, { rootMargin: AHEAD });
  observer.observe(end);
  return {
    /** Other items, from the top, or in place where `keep` is true. */
    set(others, { keep = false } = {}) {
      items = others;
      if (!keep) wanted = STEP;
      draw();
    },
  };
}

/** Puts rows in order; one that is in its place is not touched, and so keeps focus and clicks. */
function arrange(body, rows) {
  let next = body.firstChild;
  for (const row of rows) {
    if (row === next) next = row.nextSibling;
    else body.insertBefore(row, next);
  }
  while (next) {
    const unwanted = next;
    next = next.nextSibling;
    unwanted.remove();
  }
}
