// The rows of "Then and now": a filter by words, by module, and by the release that a reader's code is from.
const openLinked = () => {
  const row = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".live-then");
  if (!row) return;
  row.querySelector("details").open = true;
  row.scrollIntoView();
};
addEventListener("hashchange", openLinked);

document$.subscribe(() => {
  const filter = document.querySelector(".live-filter");
  if (!filter) return;
  openLinked();

  // Each group of rows with all that stands between its heading and the next.
  const groups = [...document.querySelectorAll("article h2")]
    .map((heading) => {
      const parts = [heading];
      for (let next = heading; (next = next.nextElementSibling) && next.tagName !== "H2"; ) parts.push(next);
      return { title: heading.firstChild.parentElement.innerText, parts };
    })
    .map((group) => ({ ...group, rows: group.parts.flatMap((part) => [...part.querySelectorAll(".live-then")]) }))
    .filter(({ rows }) => rows.length);

  const choice = (label, first, names) => {
    const select = document.createElement("select");
    select.append(...[first, ...names].map((name, n) => new Option(name, n - 1)));
    return labeled(label, select);
  };
  const labeled = (text, field) => {
    const label = document.createElement("label");
    label.append(`${text} `, field);
    filter.append(label);
    return field;
  };
  filter.replaceChildren();
  const words = labeled("Name or message", Object.assign(document.createElement("input"), { type: "search" }));
  const about = choice("About", "everything", groups.map(({ title }) => title.replace("¶", "").trim()));
  const ran = choice("Ran, and fails now, on", "any release", filter.dataset.releases.split(" "));
  const count = filter.appendChild(document.createElement("output"));

  const show = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = ({ dataset: { seen }, textContent }) =>
      wanted.every((word) => textContent.toLowerCase().includes(word)) &&
      (ran.value < 0 || ("rw".includes(seen[ran.value]) && "hf".includes(seen.at(-1))));
    let found = 0;
    groups.forEach(({ parts, rows }, n) => {
      for (const row of rows) row.hidden = !((about.value < 0 || about.value == n) && fits(row));
      const shown = rows.filter((row) => !row.hidden).length;
      for (const part of parts) part.hidden = !shown;
      found += shown;
    });
    count.textContent = `${found} of ${groups.flatMap(({ rows }) => rows).length} rows`;
  };
  filter.addEventListener("input", show);
  show();
});
