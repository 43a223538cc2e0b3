// A list of what this browser keeps of the reader's own code, on every page, and buttons that clear it.
import { button } from "./access.js";
import { element, styled } from "./output.js";
import { clear, pages } from "./edits.js";
import { count, forget } from "./exercises.js";

// Show the list in an element of a page.
export const show = async (place) => {
  await styled();
  list(place);
};

// Fill an element with the list; `cleared` is called when something of it was cleared.
export const list = (place, cleared = () => {}) => {
  const again = (act) => () => {
    act();
    list(place, cleared);
    cleared();
  };
  place.classList.add("live-stored");
  const found = pages();
  const solved = count();
  const rows = found.map(({ path, title, blocks }) =>
    element(
      "li",
      {},
      element("a", { href: path }, title),
      " ",
      button("Clear", again(() => confirm(`Clear your edits of ${title}?`) && clear(path)), {
        ariaLabel: `Clear your edits of ${title}`,
      }),
      ...Object.entries(blocks).map(([id, { code, section }]) =>
        element(
          "details",
          {},
          element("summary", {}, section || `#${id}`),
          element("a", { href: `${path}#${id}` }, "Go to the block"),
          element("pre", {}, element("code", { tabIndex: 0 }, code ?? "")),
        )
      ),
    )
  );
  const all = () =>
    confirm("Clear all your edits and verdicts of this site?") && (found.forEach(({ path }) => clear(path)), forget());
  place.replaceChildren(
    element(
      "p",
      {},
      rows.length || solved
        ? `Only this browser keeps your edits.${solved ? ` Solved exercises: ${solved}.` : ""}`
        : "This browser keeps no edits of yours.",
    ),
    element("ul", {}, ...rows),
    ...(rows.length || solved ? [element("p", {}, button("Clear all", again(all)))] : []),
  );
  return place;
};
