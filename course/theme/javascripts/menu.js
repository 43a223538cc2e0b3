// The menu of a narrow window, which shows one level of the site at a time, by keyboard.

const toggle = document.getElementById("__drawer");
const button = document.querySelector(".live-menu");
const nav = () => document.querySelector(".md-nav--primary");
const controls = () => [...nav().querySelectorAll("a, label")];

// Only the level that is shown is reached, with its title, which leads back; the page's own contents are the innermost.
export const show = async () => {
  button.ariaExpanded = toggle.checked;
  if (!toggle.checked) {
    for (const control of controls()) control.removeAttribute("tabindex");
    const { activeElement: focus, body } = document; // what is not shown any more loses the focus
    if (focus === body || nav().contains(focus)) button.focus();
    return;
  }
  const level = [...nav().querySelectorAll(".md-nav__toggle:checked ~ .md-nav")].at(-1) ?? nav();
  for (const control of controls()) control.tabIndex = control.closest(".md-nav") === level ? 0 : -1;
  await new Promise(requestAnimationFrame); // until then it is as hidden as before, and takes no focus
  const page = [...level.querySelectorAll(":scope > ul > li > .md-nav__link--active")];
  (page.find((link) => link.getClientRects().length) ?? level.querySelector(".md-nav__title")).focus();
};

document.addEventListener("change", ({ target }) => target.matches(".md-nav--primary .md-nav__toggle") && show());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && toggle.checked) toggle.click();
});
