// Exercises that are solved in their page: which blocks are stubs, who examines them, and what has been solved.
// It imports nothing, as it comes with the first load of each page of exercises.

const KEY = "live-exercises";

const element = (name, { data = {}, ...properties }, ...inside) => {
  const made = Object.assign(document.createElement(name), properties);
  Object.assign(made.dataset, data);
  made.append(...inside);
  return made;
};
const root = new URL("../", import.meta.url);

// The name of the exercise whose stub this is: a function that returns NotImplemented, or a class of which only the
// description is written; imports may precede it.
export const stub = (source) => {
  const name = source.match(/^(?:(?:import |from |@).*\n|\n)*(?:def|class) (\w+)/)?.[1];
  return /^ {4}return NotImplemented$/m.test(source) || /^class \w+.*:\n {4}"""[^"]*"""\s*$(?![^])/m.test(source)
    ? name
    : undefined;
};

// The verdict is on the code that is seen: what an answer of before has defined goes before the next one runs.
export const cleared = (name) => `globals().pop("${name}", None)`;

// Each line of it begins at the margin, as the site leaves out the indents of scripts (slim.py).
export const examination = (name) =>
  `if "${name}" not in globals(): raise NameError("${name}: this code does not define ${name}; your answer must have that name")
from examiner import examine
examine(${name})`;

export const ends = "it ends after 60 seconds of computing"; // examiner/limit.py

// A page of the course does not carry the examiner, so its kernel gets it from the site.
export const examiner = { carried: "import examiner", address: new URL("examiner.py", root) };

// What is solved, and where: the addresses of stubs by the names of exercises.
const done = () => {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY)) ?? {};
    return Array.isArray(kept) ? Object.fromEntries(kept.map((name) => [name, ""])) : kept;
  } catch {
    return {};
  }
};

const keep = (places) => {
  try {
    localStorage.setItem(KEY, JSON.stringify(places));
  } catch {
    // the verdict is shown where the browser keeps nothing, too
  }
  mark();
};

export const solved = (name, block) => keep({ ...done(), [name]: `${location.pathname}#${block}` });

// An answer that was changed is no longer that which was right.
export const changed = (name, block) => {
  const { [name]: place, ...others } = done();
  if (place === "" || place === `${location.pathname}#${block}`) keep(others);
};

export const scores = (source) => /\bgrade\(globals\(\)/.test(source);

export const tally = (names) => `${names.filter((name) => name in done()).length} of ${names.length} solved`;

export const count = () => Object.keys(done()).length;

export const forget = () => {
  localStorage.removeItem(KEY);
  mark();
};

// A link to the first exercise of the page that is not solved after the one in a block, or else before it; to the page of
// all if there is none.
export const next = (exercises, block) => {
  const after = exercises.findIndex(([, other]) => other === block) + 1;
  const found = [...exercises.slice(after), ...exercises.slice(0, after)].find(([name]) => !(name in done()));
  const properties = found ? { href: `#${found[1]}` } : { href: new URL("practice/practice/", root) };
  return element("a", properties, found ? `Next: ${found[0]}` : "All exercises");
};

// Say at the top of a page of exercises how many are solved, and which is next.
const progress = () => {
  document.querySelector(".live-progress")?.remove();
  const stubs = [...document.querySelectorAll("article pre > code")].map(({ textContent }) => stub(textContent));
  const names = [...new Set(stubs)].filter((name) => name && document.querySelector(`h2#${name}`));
  const left = names.filter((name) => !(name in done()));
  if (left.length === names.length) return;
  const more = left.length ? ["; next: ", element("a", { href: `#${left[0]}` }, left[0])] : [];
  document.querySelector("h1").after(element("div", { className: "live-progress" }, tally(names), ...more));
};

// Offer to check each stub, and mark what is solved: headings and links to them by their ids, stubs by their titles.
export const mark = () => {
  for (const acts of document.querySelectorAll(".live-acts:not(:has(.live-check))")) {
    let code = acts.closest(".live-result");
    while (code && !code.matches(".live-editable")) code = code.previousElementSibling;
    const name = stub(code?.querySelector("code").textContent ?? "");
    const properties = { type: "button", className: "live-edit live-check", ariaLabel: `Check ${name}` };
    if (name) acts.append(element("button", properties, "Check"));
  }
  progress();
  document.querySelectorAll(".live-solved").forEach((part) => part.classList.remove("live-solved"));
  document.querySelectorAll(".live-solved-there").forEach((part) => part.remove());
  for (const [name, place] of Object.entries(done())) {
    if (!/^\w+$/.test(name)) continue;
    const titles = [...document.querySelectorAll(".filename")].filter(({ textContent }) =>
      textContent.startsWith(`${name}:`)
    );
    const links = document.querySelectorAll(`.md-nav--secondary [href$="#${name}"]`);
    for (const part of [document.querySelector(`h2#${name}`), ...links, ...titles]) {
      part?.classList.add("live-solved");
      const elsewhere = place && place.split("#")[0] !== location.pathname;
      if (!part?.matches("h2") || !elsewhere) continue;
      const link = element("a", { href: place }, "another page");
      part.after(
        element("p", { className: "live-solved-there" }, "You solved it on ", link, ", which has your answer."),
      );
    }
  }
};

// Check is placed beside Run and Edit, whose script may load after this one.
document.querySelector('script[src*="livepages/live.js"]')?.addEventListener("load", mark);
