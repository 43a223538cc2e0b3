// The sections of the site, as the two files of the search have them: see course/search_files.py.
import { Index } from "./index.js";
import { forgetTerms, spelling, terms, withoutContractions } from "./words.js";

const plain = (text) =>
  text
    .replace(/<[^>]*>/g, " ")
    .replace(/&lt;/g, "<")
    .replace(/&gt;/g, ">")
    .replace(/&quot;/g, '"')
    .replace(/&#39;/g, "'")
    .replace(/&amp;/g, "&")
    .replace(/\s+/g, " ")
    .trim();

const kind = (location) =>
  /^answers\/.*#/.test(location)
    ? "answer"
    : /^lookup\/errors[\w-]*\/#/.test(location)
    ? "error"
    : /^lookup\/claims/.test(location)
    ? "claim"
    : /^lookup\/names/.test(location)
    ? "name"
    : /^practice\//.test(location)
    ? "practice"
    : /#where-next$/.test(location)
    ? "link"
    : "section";

export const WEIGHT = { link: 0.4, answer: 1, error: 0.9, claim: 0.5, name: 0.35, practice: 0.5, section: 1 };

const json = async (file, options) => (await fetch(new URL(`../../search/${file}`, import.meta.url), options)).json();
const titled = () => json("titles.json", { cache: "force-cache" }); // search.js has asked for it just before

let entries; // of all sections: their titles and wordings, which are an eighth of all that there is to look up

// The sections with these texts, in the order of the titles; or without, as long as the texts are on their way.
export const read = async (texts) => {
  const docs = await (entries ??= titled());
  const titles = new Map(
    docs.filter(({ location }) => !location.includes("#")).map((doc) => [doc.location, plain(doc.title)]),
  );
  forgetTerms(); // what is found rests on these sections alone
  const index = new Index();
  const frequency = new Map(); // in how many sections a term is
  const sections = [];
  for (const [at, { location, title, wordings = [] }] of docs.entries()) {
    const text = texts?.[at] ?? "";
    if (sections.length % 100 === 99) await new Promise((go) => setTimeout(go)); // and answer queries meanwhile
    const page = location.split("#")[0];
    const section = {
      location,
      page,
      kind: kind(location),
      title: plain(title),
      wordings,
      text: plain(text),
      get prose() { // of the few that are shown
        return plain(text.replace(/<pre>.*?<\/pre>/gs, " … ")).replace(/(… )+/g, "… ");
      },
    };
    const phrases = [section.title, ...wordings].map((phrase) => terms(withoutContractions(phrase)));
    const body = terms(section.text);
    index.add([phrases[0], phrases.slice(1).flat(), body, terms(titles.get(page) ?? "")]);
    section.phrases = phrases.map((phrase) => new Set(phrase));
    for (const term of new Set([body, ...phrases].flat())) frequency.set(term, (frequency.get(term) ?? 0) + 1);
    sections.push(section);
  }
  // Words as they are written, with their number; names of JAX and its neighbors count most.
  const vocabulary = new Map();
  for (const [term, count] of frequency) {
    vocabulary.set(spelling.get(term), Math.max(count, vocabulary.get(spelling.get(term)) ?? 0));
  }
  for (const { kind, location } of sections) {
    if (kind === "name") {
      for (const name of [location.split("#")[1] ?? "", location.split(".").at(-1)]) {
        vocabulary.set(name.toLowerCase(), 1e4);
      }
    }
  }
  const rare = (term) => Math.log(1 + sections.length / ((frequency.get(term) ?? 0) + 0.5));
  return {
    partial: !texts,
    sections,
    index,
    frequency,
    vocabulary,
    rare,
    // Sections by their anchors; above these, pages of the course by the last word of their address: "vmap" is a page.
    byEnd: new Map([
      ...sections.map((section) => [section.location.split("#")[1]?.toLowerCase(), section]),
      ...sections
        .filter(({ location }) => /\/$/.test(location) && !/^(answers|lookup|practice)\//.test(location))
        .map((section) => [section.page.split("/").at(-2), section]),
    ]),
  };
};

export const readAll = async (before) => {
  await (entries ??= titled()); // on a slow line they are here long before the texts
  const texts = await json("texts.json");
  if (texts.length !== (await entries).length) entries = json("titles.json", { cache: "reload" }); // of an older site
  await before;
  return read(texts);
};
