// Exercises that are solved in their page: which blocks are stubs, who examines them, and what has been solved.
import { element } from "../assets/livepages/run/output.js";

const KEY = "live-exercises";
const root = new URL("../", import.meta.url);

// The name of the exercise whose stub this is: a function that returns NotImplemented, or a class of which only the
// description is written; imports may precede it.
export const stub = (source) => {
  const name = source.match(/^(?:(?:import |from |@).*\n|\n)*(?:def|class) (\w+)/)?.[1];
  return /^ {4}return NotImplemented$/m.test(source) || /^class \w+.*:\n {4}"""[^"]*"""\s*$(?![^])/m.test(source)
    ? name
    : undefined;
};

export const examination = (name) => `from examiner import examine\nexamine(${name})`;

// A page of the course does not carry the examiner, so its kernel gets it from the site.
export const examiner = { carried: "import examiner", address: new URL("examiner.py", root) };

const done = () => {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY)));
  } catch {
    return new Set();
  }
};

export const solved = (name) => {
  try {
    localStorage.setItem(KEY, JSON.stringify([...done().add(name)]));
  } catch {
    // the verdict is shown where the browser keeps nothing, too
  }
  mark();
};

export const count = () => done().size;

export const forget = () => {
  localStorage.removeItem(KEY);
  document.querySelectorAll(".live-solved").forEach((part) => part.classList.remove("live-solved"));
};

// A link to the next exercise of the page that is not solved, else to the page of all.
export const next = (exercises) => {
  const found = exercises.find(([name]) => !done().has(name));
  const properties = found ? { href: `#${found[1]}` } : { href: new URL("practice/practice/", root) };
  return element("a", properties, found ? `Next: ${found[0]}` : "All exercises");
};

// Mark what is solved: headings by their ids, stubs by their titles.
export const mark = () => {
  for (const name of done()) {
    if (!/^\w+$/.test(name)) continue;
    const titles = [...document.querySelectorAll(".filename")].filter(({ textContent }) =>
      textContent.startsWith(`${name}:`)
    );
    for (const part of [document.querySelector(`h2#${name}`), ...titles]) part?.classList.add("live-solved");
  }
};
