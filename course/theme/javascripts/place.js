// Back, and a reload, return to the text that was in view. The theme and browsers remember a distance from the top, but
// what is above may have another height then: what is out of sight has not been laid out, or a page was edited.
const KEY = "live-places"; // by the entries of the history of this tab: a part of the page, where it was, and its text
const LASTS = 1500; // milliseconds in which a page may still move
const entry = () => window.navigation?.currentEntry?.key ?? location.href;
const parts = () => [...document.querySelectorAll("article > *")].filter((part) => part.getClientRects().length);
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
  if (moving || shown !== location.pathname) return;
  const header = document.querySelector(".md-header")?.getBoundingClientRect().bottom ?? 0;
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

// Go to a place, and stay there until the page is still or its reader moves it.
const go = (place) => {
  const turn = (moving = performance.now());
  const stay = () => {
    if (moving !== turn) return;
    move(place);
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
  if (shown === location.pathname && back) go(back);
});
if (["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type)) back = places[entry()];

document$.subscribe(() => {
  const same = shown === location.pathname;
  shown = location.pathname;
  if (back && !same) go(back);
  back = undefined;
});
