// Below each answer and each entry of the error dictionary: copy its link, or all of it as Markdown.
const own = new WeakSet();

export const addCopies = () => {
  for (const heading of document.querySelectorAll(".md-content h2[id]")) {
    if (own.has(heading)) continue;
    own.add(heading);
    const bar = Object.assign(document.createElement("div"), { className: "live-copy" });
    bar.append(
      button("Copy link", heading, () => address(heading)),
      button("Copy as Markdown", heading, () => markdown(heading)),
    );
    section(heading).at(-1).after(bar);
  }
};

const button = (label, heading, text) => {
  const made = Object.assign(document.createElement("button"), { type: "button", textContent: label });
  made.ariaLabel = `${label}: ${title(heading)}`;
  made.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    made.textContent = "Copied";
    alert$.next("Copied to clipboard"); // for readers who hear the page
    setTimeout(() => (made.textContent = label), 2000);
  });
  return made;
};

// Without the words of the search that led here.
const address = (heading) => {
  const found = new URL(`#${heading.id}`, location.href);
  found.searchParams.delete("h");
  return found.href;
};

const title = (heading) => heading.textContent.replace(/¶$/, "").trim();

// The heading and what follows it, up to the next one.
const section = (heading) => {
  const parts = [heading];
  for (let part = heading.nextElementSibling; part && !/^H[12]$/.test(part.tagName); part = part.nextElementSibling) {
    if (!part.matches("nav, aside")) parts.push(part);
  }
  return parts;
};

const markdown = (heading) => {
  const [, ...parts] = section(heading);
  const found = [`## ${title(heading)}`, ...parts.flatMap(form), `Run with ${versions(parts)}: ${address(heading)}`];
  return found.filter(Boolean).join("\n\n") + "\n";
};

const form = (part) => {
  if (part.matches("p, ul, ol")) return inline(part);
  const blocks = part.matches("pre") ? [part] : [...part.querySelectorAll("pre")];
  return blocks.map((block) => {
    const language = block.closest(".language-python") && !block.closest(".live-result") ? "python" : "text";
    return `\`\`\`${language}\n${block.textContent.trimEnd()}\n\`\`\``;
  });
};

// Text with its code and its links; the links that the site adds to names in code are left out.
const inline = (part) => {
  const copy = part.cloneNode(true);
  for (const hidden of copy.querySelectorAll(".live-heard")) hidden.remove(); // version.js
  for (const code of copy.querySelectorAll("code")) code.replaceWith(`\`${code.textContent}\``);
  for (const link of copy.querySelectorAll("a[href]")) link.replaceWith(`[${link.textContent}](${link.href})`);
  for (const item of copy.querySelectorAll("li")) item.prepend("- ");
  return copy.textContent.trim();
};

const versions = (parts) => {
  const found = parts.map((part) => part.textContent.match(/jax [\d.]+, Python [\d.]+, \w+/)?.[0]).find(Boolean);
  return found ?? document.querySelector("meta[name=generator]")?.content ?? "JAX";
};
