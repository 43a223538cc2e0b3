// The names of JAX: since which release each is there, as running the releases showed; and those of other libraries, as
// the versions that the site runs have them. live.js and filter.js import it.
import { describe, lacks } from "./releases.js";

// What a file says of names: "names" of those of JAX, "libraries" of the others.
const fetched = {};
export const read = (file = "names") => (fetched[file] ??= fetch(new URL(`../${file}.json`, import.meta.url)).then(
  async (answer) => {
    const data = await answer.json();
    const addresses = new Map();
    for (const [name, { reference }] of Object.entries(data.names)) {
      if (reference) addresses.set(reference, [...(addresses.get(reference) ?? []), name]);
    }
    return { ...data, addresses };
  },
));

export const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// What a text has between backticks, as code.
const coded = (text) => text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));

// The release that the reader has, as they chose it (version.js), or as the link has it; "" if unknown.
export const mine = ({ releases }) => {
  const found = [new URLSearchParams(location.search).get("jax"), kept("live-jax")];
  return found.find((release) => releases.includes(release)) ?? "";
};

// What the browser keeps under a name; nothing where it may not keep anything.
export const kept = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

// A name's lines: whether the reader's release has it; when it came, changed and went; what JAX says of that.
const history = (facts, data) => {
  const release = mine(data);
  const why = release && lacks(facts, release, data.releases);
  return [
    ...(why ? [element("p", {}, element("b", {}, `${why} your JAX ${release}.`))] : []),
    element("p", { className: facts.gone ? "live-gone" : "" }, `jax: ${describe(facts, data.releases)}.`),
    ...(facts.says ? [element("p", {}, ...coded(facts.says))] : []),
  ];
};

const head = (name, { takes = "" }) => element("p", {}, element("code", {}, element("b", {}, name), takes));

// --- the card at a name --------------------------------------------------------------------------------------------

let card, owner, waiting, styled;

// The styles of the card, which no page needs before.
const style = () => (styled ??= new Promise((loaded) => {
  const href = new URL("../stylesheets/card.css", import.meta.url);
  document.head.append(element("link", { rel: "stylesheet", href, onload: loaded, onerror: loaded }));
}));

const hide = () => {
  clearTimeout(waiting);
  owner?.removeAttribute("aria-describedby");
  card?.remove();
  card = owner = null;
};

const soon = (what, after) => {
  clearTimeout(waiting);
  waiting = setTimeout(what, after);
};

// What names stand for where the code of a page does not import them.
const USUAL = {
  jnp: "jax.numpy",
  lax: "jax.lax",
  np: "numpy",
  nnx: "flax.nnx",
  eqx: "equinox",
  ocp: "orbax.checkpoint.v1",
  optx: "optimistix",
  lx: "lineax",
};

// What names that the code of a page imports stand for, unless it imports two things by the same name.
export const imported = () => {
  const found = new Map();
  const code = [...document.querySelectorAll("article pre")].map((block) => block.textContent).join("\n");
  for (const [, module, names] of code.matchAll(/^\s*(?:from ([\w.]+) )?import ([\w., ]+)/gm)) {
    for (const each of names.split(",")) {
      const [name, local = name] = each.trim().split(/ +as +/);
      const full = module ? `${module}.${name}` : name;
      found.set(local, [undefined, full].includes(found.get(local)) ? full : "");
    }
  }
  return new Map([...Object.entries(USUAL), ...found]);
};

// The full name that a link or a piece of code writes, as far as imports tell.
const written = (place, locals) =>
  place.textContent.replace(/\(.*/s, "").replace(/^\w+/, (first) => locals.get(first) || first);

// The names that a link or a piece of code may stand for, the likeliest first. One reference may have several.
export const meant = (place, { names, addresses }, locals) => {
  const name = written(place, locals);
  if (!place.href) return Object.hasOwn(names, name) ? [name] : [];
  const found = addresses.get(place.href) ?? [];
  if (found.includes(name)) return [name];
  const last = `.${name.split(".").at(-1)}`;
  return found.toSorted((a, b) => b.endsWith(last) - a.endsWith(last));
};

// Shows the card of a name below it, where there is room.
export const show = async (place) => {
  if (place === owner) return clearTimeout(waiting);
  const locals = imported();
  const ofJax = /^jax\b/.test(written(place, locals)) || /\/docs\.jax\.dev\//.test(place.href);
  const [data] = await Promise.all([read(ofJax ? "names" : "libraries"), style()]);
  const [name] = meant(place, data, locals);
  if (!name || !place.isConnected) return;
  hide();
  const facts = data.names[name];
  owner = place;
  card = element(
    "div",
    { id: "live-card", role: "dialog", className: "md-typeset", ariaLabel: name },
    head(name, facts),
  );
  if (facts.does) card.append(element("p", {}, ...coded(facts.does)));
  if (ofJax) card.append(...history(facts, data));
  else card.append(element("p", {}, `As in ${data.versions[name.split(".")[0]]}, which this site runs.`));
  const links = element("p", {});
  if (facts.page) {
    links.append("Used in ", element("a", { href: new URL(`../${facts.page}`, import.meta.url) }, facts.title), ". ");
  }
  if (facts.reference) links.append(element("a", { href: facts.reference }, "Official page"));
  if (ofJax) {
    const choose = element("button", { type: "button" }, mine(data) ? `Your JAX: ${mine(data)}` : "Your JAX?");
    choose.dataset.liveVersion = ""; // live.js
    links.append(links.childNodes.length ? " · " : "", choose);
  }
  card.append(links);
  for (const type of ["pointerenter", "focusin"]) card.addEventListener(type, () => clearTimeout(waiting));
  card.addEventListener("pointerleave", () => soon(hide, 300));
  card.addEventListener(
    "focusout",
    ({ relatedTarget }) => card?.contains(relatedTarget) || relatedTarget === owner || soon(hide, 0),
  );
  document.body.append(card);
  place.setAttribute("aria-describedby", card.id);
  const { left, top, bottom } = place.getClientRects()[0];
  const { width, height } = card.getBoundingClientRect();
  const below = bottom + 4 + height <= innerHeight || top < height + 4;
  card.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8)) + scrollX}px`;
  card.style.top = `${(below ? bottom + 4 : top - height - 4) + scrollY}px`;
};

export const leave = () => soon(hide, 300);

addEventListener("keydown", (event) => {
  if (!card) return;
  if (event.key === "Escape") {
    if (card.contains(document.activeElement)) owner.focus();
    hide();
  } else if (event.key === "ArrowDown" && document.activeElement === owner) {
    event.preventDefault();
    card.querySelector("a, button").focus();
  }
});
addEventListener("pointerdown", ({ target }) => card && !card.contains(target) && target !== owner && hide());
document$.subscribe(hide);

// --- all public names, on the page of names ------------------------------------------------------------------------

const SHOWN = 40;

// The link to the row of Then and now that says what to write in a name's place.
const instead = ({ row }) => {
  const href = row && new URL(`../lookup/then-and-now/#${row}`, import.meta.url);
  return href ? [element("p", {}, element("a", { href }, "What to write instead"))] : [];
};

// Lists below the filter which public names, of all releases, have the words that are typed.
export const list = async (place, typed) => {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return place.replaceChildren();
  const data = await read();
  const found = Object.entries(data.names).filter(([name]) => words.every((word) => name.toLowerCase().includes(word)));
  const worth = ([name]) => name.split(".").length * 1000 + name.length;
  const rows = found
    .sort((a, b) => worth(a) - worth(b))
    .slice(0, SHOWN)
    .map(([name, facts]) => element("li", {}, head(name, {}), ...history(facts, data), ...instead(facts)));
  const more = found.length > SHOWN ? `, of which these are the first ${SHOWN}` : "";
  place.replaceChildren(
    element("p", {}, `${found.length} public names of JAX ${data.releases[0]} to ${data.releases.at(-1)} fit${more}.`),
    element("ul", {}, ...rows),
  );
};
