// Offers to run and to edit each block, in any theme. What that takes comes when it is needed.
(() => {
  const own = document.currentScript.src;

  const offer = () => {
    let number = 0;
    for (const code of document.querySelectorAll(".live-anchor + :is(.highlight, .codehilite, pre)")) {
      let part = code;
      while ((part = part.nextElementSibling) && !part.matches(".live-anchor, .live-result"));
      if (!part?.matches(".live-result:not(.live-off)") || part.querySelector(".live-run")) continue;
      number += 1;
      const place = Object.assign(document.createElement("span"), { className: "live-acts" });
      for (const act of ["Run", "Edit"]) {
        const button = Object.assign(document.createElement("button"), { type: "button", textContent: act });
        button.className = `live-${act.toLowerCase()}`;
        button.ariaLabel = `${act} block ${number}`;
        place.append(button);
      }
      part.append(place);
      code.classList.add("live-editable");
    }
  };

  const load = (name) => import(new URL(`run/${name}`, own));

  // A click into the code edits it there. A finger scrolls, a drag selects, and a name leads to its reference.
  const into = ({ target, pointerType }) =>
    pointerType !== "touch" && getSelection().isCollapsed && !target.closest("a, button, aside") &&
    target.closest(".live-editable code");
  document.addEventListener("click", (event) => {
    if (event.target.matches(".live-take")) return load("copy.js").then(({ copy }) => copy(event.target));
    const clickedOn = event.target.closest(".live-run, .live-edit, .live-here, .live-mine") ?? into(event);
    if (!clickedOn) return;
    document.querySelectorAll(".live-unloaded").forEach((note) => note.remove());
    load("page.js").then(({ clicked }) => clicked(clickedOn, event)).catch(() => unloaded(clickedOn));
  });

  // Say that what runs blocks did not come; a browser may ask for it anew only when the page is loaded again.
  const unloaded = (clickedOn) => {
    const place = clickedOn.closest(".live-acts, .live-editable") ?? clickedOn;
    const message = "Running and editing could not be loaded: is the site within reach? Reload the page to try again.";
    const note = Object.assign(document.createElement("span"), {
      className: "live-unloaded",
      role: "status",
      textContent: message,
    });
    place.after(note);
  };

  // The names under which the browser keeps what its reader has written; none where it may not keep anything.
  const stored = () => {
    try {
      return Object.keys(localStorage).filter((name) => name.startsWith("live-edits:"));
    } catch {
      return [];
    }
  };

  // Beside "run it here": what is kept of any page.
  const offerStored = () => {
    const here = document.querySelector(".live-here:not(:has(~ .live-mine))");
    if (!here || !stored().length) return;
    const properties = { type: "button", className: "live-offer live-mine", textContent: "your edits" };
    here.after(", ", Object.assign(document.createElement("button"), properties));
  };

  const arrived = () => {
    offer();
    offerStored();
    if (stored().includes(`live-edits:${location.pathname}`)) load("page.js").then(({ restore }) => restore());
    if (document.querySelector(".live-vary")) import(new URL("vary.js", own)).then(({ vary }) => vary());
    for (const place of document.querySelectorAll("[data-live-edits]")) {
      load("stored.js").then(({ show }) => show(place));
    }
  };

  // The page that Material begins on it does not know, where it replaces pages in place: for the first link to a section of
  // that page, or Back from there, it would load it again, and so end what runs in it.
  const stay = () => {
    const first = location.pathname;
    location$.next = (to) => {
      if (to.pathname !== first) {
        delete location$.next; // from now on it knows
        return location$.next(to);
      }
      if (window.event?.type === "popstate") return; // the browser scrolls
      if (to.hash) location.replace(to); // the address is that already: this scrolls, and styles the target
      else scrollTo(0, 0);
      dispatchEvent(new HashChangeEvent("hashchange")); // on which Material closes what the link was in
    };
  };

  // Material replaces pages in place, and tells those who listen to it.
  const begin = () => {
    if (window.location$) stay();
    if (window.document$) document$.subscribe(arrived);
    else arrived();
  };
  if (document.readyState === "loading") addEventListener("DOMContentLoaded", begin);
  else begin();
})();
