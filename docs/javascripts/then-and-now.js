// Rows of old names: a filter by words and by the release that a reader's code is from; a link to a row opens it.
const openLinked = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".live-then");
  if (!row) return;
  row.querySelector("details").open = true;
  row.scrollIntoView();
};
addEventListener("hashchange", openLinked);

document$.subscribe(() => {
  const filter = document.querySelector(".live-then-filter");
  if (!filter) return;
  const rows = [...document.querySelectorAll(".live-then")];
  const labeled = (text, field) => {
    const label = filter.appendChild(document.createElement("label"));
    label.append(`${text} `, field);
    return field;
  };
  filter.replaceChildren();
  const words = labeled("Name or message", Object.assign(document.createElement("input"), { type: "search" }));
  const ran = labeled("Ran on, and fails now", document.createElement("select"));
  const releases = filter.dataset.releases.split(" ").map((release) => `jax ${release}`);
  ran.append(...["any release", ...releases].map((name, n) => new Option(name, n)));
  const count = filter.appendChild(document.createElement("output"));

  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    const fits = ({ dataset: { seen }, textContent }) =>
      wanted.every((word) => textContent.toLowerCase().includes(word)) &&
      (ran.value < 1 || ("rw".includes(seen[ran.value - 1]) && "hf".includes(seen.at(-1))));
    for (const row of rows) row.hidden = !fits(row);
    count.value = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    // A heading, and what stands below it, goes with the last of its rows.
    for (const heading of document.querySelectorAll("article h2")) {
      const parts = [heading];
      for (let next = heading; (next = next.nextElementSibling) && next.tagName !== "H2"; ) parts.push(next);
      const own = parts.flatMap((part) => [...part.querySelectorAll(".live-then")]);
      for (const part of parts) part.hidden = own.length > 0 && own.every((row) => row.hidden);
    }
  };
  filter.addEventListener("input", show);
  show();
  openLinked();
});
