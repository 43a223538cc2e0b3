// What readers have written into blocks, as their browser keeps it: for each page its title and, by the ids of blocks, the
// code, the title of its section, a digest of what was published when it was written, and what an examiner said of it.
const PREFIX = "live-edits:"; // with the path of a page; live.js looks for it, too
const path = () => location.pathname;

export const digest = (text) => {
  let hash = 0;
  for (const character of text) hash = (Math.imul(hash, 31) + character.codePointAt(0)) | 0;
  return (hash >>> 0).toString(36);
};

const read = (key) => {
  try {
    return JSON.parse(localStorage.getItem(key)) ?? undefined;
  } catch {
    return undefined; // the browser keeps nothing, or something else
  }
};

// The entries of this page, by the ids of blocks.
export const kept = () => read(PREFIX + path())?.blocks ?? {};

// The entries of this page for its blocks, which are given as ids and digests of what is published now: an entry follows its
// code to where that stands now. What fits no block stays in the list of what is kept.
export const matched = (blocks) => {
  const left = kept();
  const found = {};
  const take = (id, from) => {
    found[id] = left[from];
    delete left[from];
    if (id !== from) moved = true;
  };
  let moved = false;
  for (const [id, now] of blocks) if (left[id]?.original === now) take(id, id);
  for (const [id, now] of blocks) {
    const from = !found[id] && Object.keys(left).find((other) => left[other].original === now);
    if (from) take(id, from);
  }
  for (const [id] of blocks) if (!found[id] && left[id]) take(id, id);
  const others = Object.entries(left).map(([id, entry]) => [found[id] ? `${id} before` : id, entry]);
  if (moved) write({ ...found, ...Object.fromEntries(others) });
  return found;
};

// Keep an entry for a block of this page, or none; throws where the browser cannot.
export const keep = (block, entry) => {
  const { [block]: _, ...others } = kept();
  write(entry ? { ...others, [block]: { section: section(block), ...entry } } : others);
};

const section = (block) => {
  const place = document.getElementById(block);
  const headings = [...(place?.closest("article, main, body").querySelectorAll("h1, h2, h3") ?? [])];
  const above = headings.findLast((heading) =>
    heading.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING
  );
  return [...(above?.childNodes ?? [])].filter((part) => !part.matches?.("a")).map((part) => part.textContent).join("")
    .trim();
};

const write = (blocks) => {
  if (!Object.keys(blocks).length) return localStorage.removeItem(PREFIX + path());
  const title = document.querySelector("h1")?.firstChild.textContent.trim() ?? path();
  localStorage.setItem(PREFIX + path(), JSON.stringify({ title, blocks }));
};

// Call when another tab has changed what is kept of this page.
export const followed = (act) =>
  addEventListener("storage", ({ key }) => (key === null || key === PREFIX + path()) && act());

// All pages of which something is kept: their paths, titles and blocks.
export const pages = () =>
  keys()
    .filter((key) => key.startsWith(PREFIX))
    .map((key) => ({ path: key.slice(PREFIX.length), ...read(key) }))
    .filter(({ blocks }) => blocks);

const keys = () => {
  try {
    return Object.keys(localStorage);
  } catch {
    return []; // the browser keeps nothing
  }
};

export const clear = (page) => localStorage.removeItem(PREFIX + page);
