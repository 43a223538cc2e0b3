// A field that leaves of a page's cards only those that hold what is typed. Without it all are there.
document$.subscribe(() => {
  const place = document.querySelector("[data-live-filter]");
  if (!place || place.firstElementChild) return;
  const cards = [...document.querySelectorAll(".live-row")].map((card) => [card, card.textContent.toLowerCase()]);
  const field = Object.assign(document.createElement("input"), { type: "search", className: "live-filter" });
  field.placeholder = field.ariaLabel = place.dataset.liveFilter;
  const said = document.createElement("output");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    const shown = cards.filter(([card, text]) => !(card.hidden = !words.every((word) => text.includes(word))));
    said.value = field.value.trim() ? `${shown.length} of ${cards.length}` : "";
  });
  place.append(field, said);
});
