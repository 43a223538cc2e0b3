// What the theme's own script leaves out. It runs once: the theme replaces pages in place (instant navigation), and
// sets code up as it comes into view. It runs before the theme's: while that waits for a script, its map of the site
// arrives, which it then reads again for every link that has a preview.

const root = document.documentElement;
const one = (what) => document.querySelector(what);
const each = (what, act, within = document) => within.querySelectorAll(what).forEach(act);
const aim = () => document.getElementById(decodeURIComponent(location.hash.slice(1))); // what the address names

// The keyboard must reach every region that scrolls. The theme sees to that only for those that scroll sideways, and only
// for readers with a mouse.
const reach = (region) => {
  if (region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight) region.tabIndex = 0;
};
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));

// Names for what has only an icon; the buttons of each block of code are no landmark of the page.
const name = ({ parentElement: all }) => {
  each("nav.md-code__nav", (nav) => (nav.role = "none"), all);
  each(".md-code__button", (button) => (button.ariaLabel = "Copy to clipboard"), all);
  each(
    ".md-annotation__index",
    (mark) => (mark.ariaLabel = `Note ${mark.firstElementChild.dataset.mdAnnotationId}`),
    all,
  );
};

new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes) {
    if (type === "attributes" && target.matches("pre > code:not([tabindex])")) reach(target);
    if (target.matches(".md-nav__link")) mark();
    for (const node of addedNodes) if (node.matches?.("nav.md-code__nav, aside.md-annotation")) name(node);
  }
}).observe(document.body, { attributeFilter: ["class", "tabindex"], childList: true, subtree: true });

// What only some pages need comes when it is about to be seen, or at once if the address may set a filter.
const own = document.currentScript.src;
const load = (script) => import(new URL(script, own));
root.dataset.liveExercises = new URL("exercises.js", own);
const near = new IntersectionObserver(
  (parts) => {
    for (const { isIntersecting, target } of parts) {
      if (target.matches(".live-formula")) {
        if (isIntersecting) root.classList.add("live-formulas"); // live.css
      } else if (isIntersecting || location.search) {
        const script = target.matches(".live-panes") ? "panes" : target.matches(".filename") ? "exercises" : "filter";
        load(`${script}.js`).then(({ mark }) => mark?.());
      }
    }
  },
  { rootMargin: "50%" },
);

// Paper has what is open on the screen, and all of an output. The theme opens all that is folded when it is about to be printed, right after this.
const fold = () => each("details:not([open], .live-more)", (part) => part.classList.add("live-folded"));
const unfold = () => each(".live-folded", (part) => part.classList.remove("live-folded"));
matchMedia("print").onchange = ({ matches }) => (matches ? fold() : unfold());
addEventListener("beforeprint", fold);
addEventListener("afterprint", unfold);

// A card at a name of JAX or of another library: on pointing at it, on focus, on a long press.
const named = ({ target }) => {
  const place = target.closest?.("article a.live-name, article :not(pre) > code:not(:has(a))");
  return place?.href || /^(jax|jnp|lax|np|nnx|optax|eqx|ocp|scipy)\.\w/.test(place?.textContent) ? place : null;
};
let cards, press, pressed;
const begin = (event) => {
  const place = named(event);
  if (!place || (event.type === "focusin" && !place.matches(":focus-visible"))) return;
  const long = event.pointerType === "touch";
  pressed = false;
  clearTimeout(press);
  press = setTimeout(() => {
    pressed = long;
    (cards ??= load("names.js")).then(({ show }) => show(place));
  }, long ? 500 : 250);
};
const end = (event) => {
  if (!named(event)) return;
  clearTimeout(press);
  if (event.pointerType !== "touch") cards?.then(({ leave }) => leave());
};
for (const type of ["pointerover", "focusin"]) addEventListener(type, begin);
for (const type of ["pointerout", "focusout"]) addEventListener(type, end);
// A long press is neither a click nor the browser's menu.
for (const type of ["click", "contextmenu"]) {
  addEventListener(type, (event) => pressed && named(event) && event.preventDefault(), true);
}

// The site for the JAX that its reader has: asked for in the header and in cards, and kept in the browser.
let versions;
const version = () => (versions ??= load("version.js"));
document.addEventListener(
  "click",
  ({ target }) => target.closest("[data-live-version]") && version().then(({ choose }) => choose()),
);

// A link to what lies in something folded opens it.
const open = () => {
  const target = aim();
  const folded = target?.closest(".live-then")?.querySelector("details") ?? target?.closest("details");
  if (folded) folded.open = true;
};
addEventListener("hashchange", open);

// From what a link leads to, reading goes on by keyboard too. Browsers and the theme leave the focus on nothing, from where it
// would begin with the page again. The link that a heading has to itself keeps the focus.
let itself;
const attend = () => {
  const target = aim();
  const place = itself ? target?.querySelector(".headerlink") ?? target : target;
  if (!place) return;
  if (place.tabIndex < 0 && !place.hasAttribute("tabindex")) {
    place.tabIndex = -1;
    place.onblur = () => place.removeAttribute("tabindex");
  }
  place.focus({ preventScroll: true });
};
addEventListener("click", ({ target }) => {
  const link = target.closest?.("a[href]");
  itself = link?.matches(".headerlink");
  // When everybody else has done with the click.
  if (link?.hash && link.pathname === location.pathname && link.host === location.host) setTimeout(attend);
}, true);

// What the browser keeps under a name; nothing where it may not keep anything.
const stored = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

// --- the reader's place -----------------------------------------------------------------------------------------------

// A link leads to a section; back, and a reload, to the text that was in view. The theme and browsers go there once, or to
// a distance from the top, but what is above may get another height: what is out of sight has not been laid out.
const KEY = "live-places"; // by the entries of the history of this tab: a part of the page, where it was, and its text
const LASTS = 1500; // milliseconds in which a page may still move
const entry = () => window.navigation?.currentEntry?.key ?? location.href;
const parts = () =>
  [...document.querySelectorAll(".md-content article > *")].filter((part) => part.getClientRects().length);
const text = (part) => part.textContent.slice(0, 80);

let places;
try {
  places = JSON.parse(sessionStorage.getItem(KEY)) ?? {};
} catch {
  places = {};
}
let shown; // the path of the page that is shown: between two pages the address is that of the next one
let back; // where to go when it has come
let moving = 0; // counts what moves it

const note = () => {
  // Below an open search on a phone, the theme holds the page at its top.
  if (moving || shown !== location.pathname || "mdScrolllock" in document.body.dataset) return;
  const header = one(".md-header")?.getBoundingClientRect().bottom ?? 0;
  const all = parts();
  const index = all.findIndex((part) => part.getBoundingClientRect().bottom > header);
  if (index < 0) return;
  if (scrollY) places[entry()] = [index, Math.round(all[index].getBoundingClientRect().top), text(all[index])];
  else delete places[entry()]; // the top stays where it is
  try {
    sessionStorage.setItem(KEY, JSON.stringify(places));
  } catch {
    // this tab still knows
  }
};

const move = ([index, top, words]) => {
  const all = parts();
  const same = all.map((part, at) => [Math.abs(at - index), part]).filter(([, part]) => text(part) === words);
  const part = same.sort(([one], [other]) => one - other)[0]?.[1] ?? all[index];
  const away = (part?.getBoundingClientRect().top ?? top) - top;
  if (Math.abs(away) > 1) scrollBy({ top: away, behavior: "instant" });
};

// Go to a place, or else to what the address names, and stay there until the page is still or its reader moves it.
const go = () => {
  const place = back;
  const turn = moving = place || location.hash ? performance.now() : 0;
  back = undefined;
  const stay = () => {
    if (!turn || moving !== turn) return;
    if (place) move(place);
    else one(":target")?.scrollIntoView();
    mark();
    if (performance.now() - turn < LASTS) requestAnimationFrame(stay);
    else moving = 0;
  };
  stay();
};
for (const act of ["wheel", "touchstart", "keydown", "pointerdown"]) {
  addEventListener(act, () => (moving = 0), { capture: true, passive: true });
}

let waiting;
addEventListener("scroll", () => (waiting ??= setTimeout(() => ((waiting = undefined), note()), 50)), {
  passive: true,
});
addEventListener("click", note, { capture: true });
addEventListener("pagehide", note);
addEventListener("popstate", () => {
  back = places[entry()];
  if (shown === location.pathname) go();
});
if (["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type)) back = places[entry()];

// In the table of contents the theme marks the last section where a page ends. What was asked for may be above it.
const mark = () => {
  const end = scrollY + innerHeight > root.scrollHeight - 2;
  if (!end || !(one("h2:target")?.getBoundingClientRect().top > 0)) return;
  each(
    ".md-nav--secondary .md-nav__link",
    (link) => link.classList.toggle("md-nav__link--active", link.hash === location.hash),
  );
};

// --- each page ---------------------------------------------------------------------------------------------------------

const arrived = () => {
  if (/\/practice\//.test(location.pathname)) load("exercises.js").then(({ mark }) => mark());
  if (versions || stored("live-jax") || stored("live-from") || /[?&]jax=/.test(location.search)) {
    version().then(({ show }) => show());
  }
  sizes.disconnect();
  each("pre > code, .live-formula, .md-typeset__scrollwrap", (region) => sizes.observe(region));
  near.disconnect();
  const later = (what) => each(what, (part) => near.observe(part));
  later(".live-panes, [data-live-filter], .filename");
  addEventListener("scroll", () => later(".live-formula"), { once: true }); // their font is heavy
  if (/\/(answers\/.|lookup\/errors)/.test(location.pathname)) {
    load("copy.js").then(({ addCopies }) => addCopies());
  }
  // Tab stops at a name in code once a page, not in each block: they lead to the same place.
  const names = new Set();
  each("article a.live-name:not(details *)", (link) => {
    if (names.size === names.add(link.href).size) link.tabIndex = -1;
  });
  open();
  // A reader who has come back, or who has begun, is somewhere else.
  if (location.hash && !back && (shown || document.activeElement === document.body)) attend();
  if (shown === location.pathname) return;
  shown = location.pathname;
  go();
};
addEventListener("DOMContentLoaded", () => {
  document$.subscribe(arrived);
  // The menu of a narrow window opens by keyboard too: the theme has a label for it, which has no place in the order of Tab.
  const label = one(".md-header__button[for=__drawer]");
  const menu = document.createElement("button");
  menu.className = `${label.className} live-menu`;
  Object.assign(menu, { ariaLabel: "Menu", ariaExpanded: "false", onclick: () => one("#__drawer").click() });
  menu.append(...label.childNodes);
  label.replaceWith(menu);
  one("#__drawer").onchange = () => load("menu.js").then(({ show }) => show());
  one(".md-dialog").role = "status"; // says that something was copied
});
