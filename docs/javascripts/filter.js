// A filter for the rows of a page: by words and, where rows say how each release took them, by the release that a reader's
// code is from. Without this script all rows are there.
const kinds = ".live-row, .live-then, .live-contents li";
document$.subscribe(() => {
  const place = document.querySelector("[data-live-filter]");
  if (!place || place.firstElementChild) return;
  const rows = [...document.querySelectorAll(kinds)].map((row) => [row, row.textContent.toLowerCase()]);
  const labeled = (text, field) => {
    const label = place.appendChild(document.createElement("label"));
    label.append(`${text} `, field);
    return field;
  };
  const words = labeled(place.dataset.liveFilter, Object.assign(document.createElement("input"), { type: "search" }));
  const releases = place.dataset.releases?.split(" ").map((release) => `jax ${release}`) ?? [];
  const ran = document.createElement("select");
  ran.append(...["any release", ...releases].map((name, n) => new Option(name, n)));
  if (releases.length) labeled("Ran on, and fails now", ran);
  const count = place.appendChild(document.createElement("output"));

  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    const fits = ({ dataset: { seen } }, text) =>
      wanted.every((word) => text.includes(word)) &&
      (ran.value < 1 || ("rw".includes(seen[ran.value - 1]) && "hf".includes(seen.at(-1))));
    for (const [row, text] of rows) row.hidden = !fits(row, text);
    count.value = `${rows.filter(([row]) => !row.hidden).length} of ${rows.length}`;
    // A heading, and what stands below it, goes with the last of its rows.
    for (const heading of document.querySelectorAll("article h2")) {
      const parts = [heading];
      for (let next = heading; (next = next.nextElementSibling) && next.tagName !== "H2"; ) parts.push(next);
      const own = parts.flatMap((part) => [...part.querySelectorAll(kinds)]);
      for (const part of parts) part.hidden = own.length > 0 && own.every((row) => row.hidden);
    }
  };
  place.addEventListener("input", show);
  show();
});
