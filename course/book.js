/* Make the article of a page ready for the book, and return it as XHTML: what paper shows, with ids of its own. */
(({ key, keys, root, url }) => {
  const article = document.querySelector("article");
  for (const details of article.querySelectorAll("details.note, details.info, details.example, details.tip")) {
    details.open = true;
  }
  article.querySelectorAll("details:not([open])").forEach((part) => part.remove());
  const hidden = [...article.querySelectorAll("*")].filter(
    (part) => !part.closest("svg, math") && !part.checkVisibility() && !part.id,
  );
  hidden.forEach((part) => part.remove());
  article.querySelectorAll(".headerlink, .live-masthead, .live-downloads, button, script, style, nav, form").forEach((
    part,
  ) => part.remove());
  for (const details of article.querySelectorAll("details")) {
    const block = Object.assign(document.createElement("div"), { className: "note" });
    const title = details.querySelector(":scope > summary");
    if (title) {
      const paragraph = document.createElement("p");
      paragraph.append(Object.assign(document.createElement("strong"), { textContent: title.textContent }));
      title.replaceWith(paragraph);
    }
    block.append(...details.childNodes);
    details.replaceWith(block);
  }
  for (const level of [5, 4, 3, 2, 1]) {
    for (const heading of article.querySelectorAll(`h${level}`)) {
      const lower = document.createElement(`h${level + 1}`);
      lower.id = heading.id;
      lower.append(...heading.childNodes);
      heading.replaceWith(lower);
    }
  }
  const own = (id) => `${key}--${id}`;
  for (const part of article.querySelectorAll("*")) {
    for (const { name, value } of [...part.attributes]) {
      if (name === "id") part.id = own(value);
      else if (["aria-labelledby", "aria-describedby", "for"].includes(name)) part.removeAttribute(name);
      else if (name.startsWith("data-") || name.startsWith("on")) part.removeAttribute(name);
      else if (name === "xlink:href" && value.startsWith("#")) part.setAttribute(name, `#${own(value.slice(1))}`);
      else if (value.includes("url(#")) part.setAttribute(name, value.replace(/url\(#/g, `url(#${key}--`));
    }
  }
  for (const link of article.querySelectorAll("a[href]")) {
    const target = new URL(link.getAttribute("href"), location.href);
    const [page, anchor] = [target.href.split("#")[0], decodeURIComponent(target.hash.slice(1))];
    const file = page.endsWith("/") ? `${page}index.html` : page;
    if (keys[file]) link.setAttribute("href", `#${keys[file]}${anchor ? `--${anchor}` : ""}`);
    else if (!page.startsWith(root)) link.setAttribute("href", target.href);
    else if (url) link.setAttribute("href", url + target.href.slice(root.length));
    else link.replaceWith(...link.childNodes);
  }
  const title = article.querySelector("h2"); // what the page was called by its first heading's id leads to the page
  title.before(Object.assign(document.createElement("span"), { id: title.id }));
  title.id = key;
  const serializer = new XMLSerializer();
  return [...article.childNodes].map((node) => serializer.serializeToString(node)).join("");
});
