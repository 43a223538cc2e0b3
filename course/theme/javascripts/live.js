// What the theme's own script leaves out. It runs once: the theme replaces pages in place (instant navigation), and
// sets code up as it comes into view. It runs before the theme's: while that waits for a script, its map of the site
// arrives, which it then reads again for every link that has a preview.

// The keyboard must reach every region that scrolls. The theme sees to that only for those that scroll sideways, and only
// for readers with a mouse.
const reach = (region) => {
  if (region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight) region.tabIndex = 0;
};
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));

// Names for what has only an icon; the buttons of each block of code are no landmark of the page.
const name = (added) => {
  for (const nav of added.parentElement.querySelectorAll("nav.md-code__nav")) nav.setAttribute("role", "none");
  for (const button of added.parentElement.querySelectorAll(".md-code__button")) button.ariaLabel = "Copy to clipboard";
  for (const mark of added.parentElement.querySelectorAll(".md-annotation__index")) {
    mark.ariaLabel = `Note ${mark.firstElementChild.dataset.mdAnnotationId}`;
  }
};

new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes) {
    if (type === "attributes" && target.matches("pre > code:not([tabindex])")) reach(target);
    for (const node of addedNodes) if (node.matches?.("nav.md-code__nav, aside.md-annotation")) name(node);
  }
}).observe(document.body, { attributeFilter: ["tabindex"], childList: true, subtree: true });

// What only some pages need comes when it is about to be seen, or at once if the address may set a filter.
const own = document.currentScript.src;
document.documentElement.dataset.liveExercises = new URL("exercises.js", own);
const near = new IntersectionObserver(
  (parts) => {
    for (const { isIntersecting, target } of parts) {
      if (isIntersecting || location.search) {
        import(new URL(target.matches(".live-panes") ? "panes.js" : "filter.js", own));
      }
    }
  },
  { rootMargin: "50%" },
);

// Paper has what is open on the screen. The theme opens all that is folded when it is about to be printed, right after this.
const fold = () =>
  document.querySelectorAll("details:not([open])").forEach((part) => part.classList.add("live-folded"));
const unfold = () => document.querySelectorAll(".live-folded").forEach((part) => part.classList.remove("live-folded"));
const printed = matchMedia("print");
printed.addEventListener("change", ({ matches }) => (matches ? fold() : unfold()));
addEventListener("beforeprint", fold);
addEventListener("afterprint", unfold);

// What invites to search opens the search, which has a field of its own on a phone, with the words that it holds.
document.addEventListener("click", ({ target }) => {
  const words = target.closest("[data-live-ask]")?.dataset.liveAsk;
  if (words === undefined) return;
  const toggle = document.getElementById("__search");
  if (!toggle.checked) toggle.click();
  const field = document.querySelector(".md-search__input");
  field.focus();
  if (!words) return;
  field.value = words;
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// A card at a name of JAX: on pointing at it, on focus, on a long press.
const named = ({ target }) => {
  const place = target.closest?.("article a.live-name, article :not(pre) > code:not(:has(a))");
  return /\/docs\.jax\.dev\//.test(place?.href) || /^(jax|jnp|lax)\.\w/.test(place?.textContent) ? place : null;
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
    (cards ??= import(new URL("names.js", own))).then(({ show }) => show(place));
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
const version = () => (versions ??= import(new URL("version.js", own)));
document.addEventListener(
  "click",
  ({ target }) => target.closest("[data-live-version]") && version().then(({ ask }) => ask()),
);

// A link to what lies in something folded opens it.
const open = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest(".live-then")?.querySelector("details") ?? target?.closest("details");
  if (!folded || folded.open) return;
  folded.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", open);

// What the browser keeps under a name; nothing where it may not keep anything.
const stored = (name) => {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
};

const arrived = () => {
  if (/\/practice\//.test(location.pathname) && stored("live-exercises")) {
    import(new URL("exercises.js", own)).then(({ mark }) => mark());
  }
  if (versions || stored("live-jax") || stored("live-from") || /[?&]jax=/.test(location.search)) {
    version().then(({ show }) => show());
  }
  sizes.disconnect();
  document.querySelectorAll("pre > code, .live-formula, .md-typeset__scrollwrap").forEach((region) =>
    sizes.observe(region)
  );
  near.disconnect();
  document.querySelectorAll(".live-panes, [data-live-filter]").forEach((part) => near.observe(part));
  if (/\/(answers\/.|lookup\/errors)/.test(location.pathname)) {
    import(new URL("copy.js", own)).then(({ addCopies }) => addCopies());
  }
  open();
};
addEventListener("DOMContentLoaded", () => document$.subscribe(arrived));
