// A filter for the rows of a page: by words and, where rows say in which releases they ran, by the release that a reader's
// code is from. The address keeps both (?filter=tree&from=0.5.3). Without this script all rows are there.
const kinds = ".live-row, .live-then, .live-entry, .live-contents li";
let show = () => {};

// What code calls modules of JAX.
const CALLED = {
  jnp: "jax.numpy",
  np: "jax.numpy",
  jrandom: "jax.random",
  jr: "jax.random",
  jtu: "jax.tree_util",
  jsp: "jax.scipy",
  pl: "jax.experimental.pallas",
};

// What is typed or pasted as words in small letters, with the modules of names in full, and without the path of a machine.
const plainly = (typed) =>
  typed
    .toLowerCase()
    .replace(/ ?\([^()\s]*[\\/][^()]*\)/g, "")
    .replace(/\.? did you mean.*$/, "")
    .replace(/(?<![\w.])\w+(?=\.\w)/g, (first) => (Object.hasOwn(CALLED, first) ? CALLED[first] : first));

// The place of the newest of some releases that is no newer than one, or of the first.
const nearest = (releases, release) => {
  const older = (other) => release.localeCompare(other, "en", { numeric: true }) >= 0;
  return Math.max(0, releases.findLastIndex(older));
};

// The release that the reader has chosen (version.js), or that of the link that they follow; "" if there is none.
const mine = () => {
  try {
    return new URLSearchParams(location.search).get("jax") ?? localStorage.getItem("live-jax") ?? "";
  } catch {
    return "";
  }
};

document$.subscribe(() => {
  const place = document.querySelector("[data-live-filter]");
  if (!place || place.firstElementChild) return;
  const rows = [...document.querySelectorAll(kinds)].map((row) => {
    const { id, dataset } = row.firstElementChild;
    return { row, text: row.textContent.toLowerCase(), id, seen: dataset.seen };
  });
  const labeled = (text, field) => {
    const label = place.appendChild(document.createElement("label"));
    label.append(`${text} `, field);
    return field;
  };
  const words = labeled(place.dataset.liveFilter, Object.assign(document.createElement("input"), { type: "search" }));
  const releases = place.dataset.releases?.split(" ") ?? [];
  const ran = document.createElement("select");
  ran.append(new Option("any release", ""), ...releases.map((release) => new Option(`jax ${release}`, release)));
  if (releases.length) labeled("Ran on, and fails now", ran);
  // The reader's own release is chosen; on the newest, nothing fails that ran on it.
  const own = /^\d+(\.\d+)+$/.test(mine()) && releases.length ? nearest(releases, mine()) : -1;
  if (own >= 0 && own < releases.length - 1) {
    ran.selectedIndex = own + 1;
    if (releases[own] !== mine()) ran.selectedOptions[0].text += `, the nearest to your ${mine()}`;
  }
  const count = place.appendChild(document.createElement("output"));
  const search = place.appendChild(Object.assign(document.createElement("button"), { type: "button", hidden: true }));

  const fields = { filter: words, from: ran };
  const given = new URLSearchParams(location.search);
  for (const [name, field] of Object.entries(fields)) if (given.get(name)) field.value = given.get(name);
  ran.selectedIndex = Math.max(0, ran.selectedIndex); // where the address names another release

  // A row with cells says which releases they are, and gets a link to itself.
  for (const { row, id, seen } of rows.filter(({ seen }) => seen)) {
    const same = [...seen.matchAll(/(.)\1*/g)].map((
      { 0: cells, index },
    ) => [releases[index], releases[index + cells.length - 1], cells[0]]);
    row.firstElementChild.title = same.map(([first, last, cell]) =>
      `${first === last ? first : `${first} to ${last}`} ${cell}`
    ).join(", ");
    const link = Object.assign(document.createElement("a"), {
      className: "headerlink",
      href: `#${id}`,
      textContent: "¶",
    });
    link.ariaLabel = "Link to this row";
    row.firstElementChild.append(link);
  }

  show = () => {
    const typed = words.value.toLowerCase().split(/\s+/);
    const wanted = plainly(words.value).split(/\s+/);
    const from = releases.indexOf(ran.value);
    const fits = ({ text, seen }) =>
      [wanted, typed].some((all) => all.every((word) => text.includes(word))) &&
      (from < 0 || (/[▇▅]/.test(seen[from]) && /[▃▁]/.test(seen.at(-1))));
    // A row that the address leads to is shown in any case.
    for (const each of rows) each.row.hidden = !fits(each) && !each.row.querySelector(":target");
    const names = document.querySelector("[data-live-names]");
    if (names && (words.value || names.firstChild)) {
      import("./names.js").then(({ list }) => list(names, plainly(words.value)));
    }
    const left = rows.filter(({ row }) => !row.hidden).length;
    count.value = `${left} of ${rows.length}`;
    search.hidden = left > 0 || !words.value.trim();
    search.dataset.liveAsk = words.value.trim(); // live.js opens the search with it
    search.textContent = `Search the whole site for “${words.value.trim().replace(/^(.{40}).+$/, "$1…")}”`;
    // A heading, and what stands below it, goes with the last of its rows.
    for (const heading of document.querySelectorAll("article h2")) {
      const parts = [heading];
      for (let next = heading; (next = next.nextElementSibling) && next.tagName !== "H2";) parts.push(next);
      const own = parts.flatMap((part) => (part.matches(kinds) ? part : [...part.querySelectorAll(kinds)]));
      const none = own.length > 0 && own.every((row) => row.hidden);
      for (const part of parts) if (!own.includes(part)) part.hidden = none;
    }
  };
  const keep = () => {
    const address = new URL(location.href);
    for (const [name, { value }] of Object.entries(fields)) {
      value.trim() ? address.searchParams.set(name, value.trim()) : address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address);
  };
  place.addEventListener("input", () => {
    show();
    keep();
  });
  show();
});
addEventListener("hashchange", () => {
  show();
  document.querySelector(":target")?.scrollIntoView();
});
