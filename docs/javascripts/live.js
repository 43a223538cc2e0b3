// What the theme's own script leaves out. It runs once; the theme replaces pages in place (instant navigation), and
// brings code to life as it comes into view.

// A region that scrolls must be reachable with the keyboard: the theme sees to it only sideways, and only with a mouse.
const reach = (region) => {
  if (region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight) region.tabIndex = 0;
};
const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));

// The buttons of each block of code are no landmark of the page; their tooltips take the titles that named them.
const name = (nav) => {
  nav.setAttribute("role", "none");
  for (const button of nav.children) button.setAttribute("aria-label", "Copy to clipboard");
};

new MutationObserver((changes) => {
  for (const { type, target, addedNodes } of changes) {
    if (type === "attributes" && target.matches("pre > code:not([tabindex])")) reach(target);
    for (const node of addedNodes) if (node.matches?.("nav.md-code__nav")) name(node);
  }
}).observe(document.body, { attributeFilter: ["tabindex"], childList: true, subtree: true });

document$.subscribe(() => {
  sizes.disconnect();
  document.querySelectorAll("pre > code, .md-typeset__scrollwrap").forEach((region) => sizes.observe(region));
});
