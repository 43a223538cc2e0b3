// The names of JAX: since which release each is there, as running the releases showed. live.js and filter.js ask for it.

let fetched;
const read = () =>
  (fetched ??= fetch(new URL("../names.json", import.meta.url)).then(async (answer) => {
    const { oldest, newest, names } = await answer.json();
    const addresses = new Map();
    for (const [name, { reference }] of Object.entries(names))
      if (reference) addresses.set(reference, [...(addresses.get(reference) ?? []), name]);
    return { oldest, newest, names, addresses };
  }));

const element = (tag, properties, ...children) => {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
};

// What a text has between backticks, as code.
const coded = (text) => text.split("`").map((part, place) => (place % 2 ? element("code", {}, part) : part));

// A name's lines: when it came, changed and went; what JAX says of that.
const history = ({ since, changed, deprecated, gone, says }, { oldest, newest }) => {
  const facts = [since ? `since ${since}` : `since ${oldest} or before`];
  if (changed) facts.push(`parameters changed in ${changed}`);
  if (deprecated) facts.push(`deprecated in ${deprecated}`);
  if (gone) facts.push(`gone in ${gone}`);
  else if (deprecated) facts.push(`still there in ${newest}`);
  return [element("p", { className: gone ? "live-gone" : "" }, `jax: ${facts.join(", ")}.`), ...(says ? [element("p", {}, ...coded(says))] : [])];
};

const head = (name, { takes = "" }) => element("p", {}, element("code", {}, element("b", {}, name), takes));

// --- the card at a name --------------------------------------------------------------------------------------------

let card, owner, waiting, styled;

// The styles of the card, which no page needs before.
const style = () =>
  (styled ??= new Promise((loaded) => {
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

// The name of JAX that a link or a piece of code stands for, if it is known.
const meant = (place, { names, addresses }) => {
  if (place.href) {
    const found = addresses.get(place.href) ?? [];
    const last = place.textContent.split(".").at(-1);
    return found.find((name) => name.endsWith(`.${last}`)) ?? found[0];
  }
  const name = place.textContent.replace(/\(.*/s, "").replace(/^jnp\b/, "jax.numpy").replace(/^lax\b/, "jax.lax");
  return Object.hasOwn(names, name) ? name : undefined;
};

// Shows the card of a name below it, where there is room.
export const show = async (place) => {
  if (place === owner) return clearTimeout(waiting);
  const [data] = await Promise.all([read(), style()]);
  const name = meant(place, data);
  if (!name || !place.isConnected) return;
  hide();
  const facts = data.names[name];
  owner = place;
  card = element("div", { id: "live-card", role: "dialog", className: "md-typeset", ariaLabel: name }, head(name, facts));
  if (facts.does) card.append(element("p", {}, ...coded(facts.does)));
  card.append(...history(facts, data));
  const links = element("p", {});
  if (facts.page) links.append("Used in ", element("a", { href: new URL(`../${facts.page}`, import.meta.url) }, facts.title), ". ");
  if (facts.reference) links.append(element("a", { href: facts.reference }, "Official page"));
  if (links.childNodes.length) card.append(links);
  for (const type of ["pointerenter", "focusin"]) card.addEventListener(type, () => clearTimeout(waiting));
  card.addEventListener("pointerleave", () => soon(hide, 300));
  card.addEventListener("focusout", ({ relatedTarget }) => card?.contains(relatedTarget) || relatedTarget === owner || soon(hide, 0));
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
    card.querySelector("a")?.focus();
  }
});
addEventListener("pointerdown", ({ target }) => card && !card.contains(target) && target !== owner && hide());
document$.subscribe(hide);

// --- all public names, on the page of names ------------------------------------------------------------------------

const SHOWN = 40;

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
    .map(([name, facts]) => element("li", {}, head(name, {}), ...history(facts, data)));
  const more = found.length > SHOWN ? `, of which these are the first ${SHOWN}` : "";
  place.replaceChildren(element("p", {}, `${found.length} public names of JAX ${data.oldest} to ${data.newest} fit${more}.`), element("ul", {}, ...rows));
};
