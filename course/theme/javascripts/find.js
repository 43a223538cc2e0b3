// Finds sections of the site: by words and their other forms, by whole questions, by names, and by error messages.
import { stemmer } from "./vendor/stemmer.js";
import { told } from "./releases.js";

const SHOWN = 12; // results
const EXCERPT = 260; // characters
const TERMS = 30; // of a long query, the rarest

// --- words ---------------------------------------------------------------------------------------------------------

const COMMON = new Set(
  "a an the is are do does did i my me we you your to of it its this that be am was so by".split(" "),
);
const surface = new Map(); // a term of the index, as it was first written

// Words that people use for one another. The first of each line stands for all.
const SAME = new Map(
  `slow slower slowly
  fast faster quick quicker quickly speed accelerate
  large larger big bigger huge
  largest biggest highest
  small smaller tiny
  several many multiple
  same identical equal
  every each
  again anew repeatedly
  gpu card
  machine computer
  image picture photo
  parameter weight
  model network net
  array tensor vector
  train learn
  number value
  save store
  run execute
  start begin
  change vary
  choose pick select
  display print
  raise throw
  hang freeze stuck wait
  error exception
  warning complaint`.split("\n").flatMap((line) => {
    const [one, ...others] = line.trim().split(" ").map((word) => stemmer(word));
    return others.map((other) => [other, one]);
  }),
);

const term = (word) => {
  const lower = word.toLowerCase();
  const stem = /^[a-z]{4,}$/.test(lower) ? stemmer(lower) : lower;
  const found = SAME.get(stem) ?? stem;
  if (!surface.has(found)) surface.set(found, lower);
  return found;
};

// The terms of a word: its stem; those of a name, such as jax.lax.fori_loop, are the name in full and the stems of its parts.
const termsOf = (word) => {
  if (COMMON.has(word.toLowerCase())) return [];
  const parts = word.split(/[._]+|(?<=[a-z\d])(?=[A-Z])/).filter(Boolean);
  const names = parts.length > 1 ? [word, ...word.split(".").slice(1).filter((part) => part.includes("_"))] : [];
  return [
    ...names.map((name) => surfaced(name.toLowerCase())),
    ...parts.filter((part) => !COMMON.has(part.toLowerCase())).map(term),
  ];
};

const split = new Map(); // the terms of each word that was seen: most words are met hundreds of times

const terms = (text) => {
  const found = [];
  for (const word of text.match(/[\p{L}_]\w*(?:\.[\p{L}_]\w*)*|\d+(?:\.\d+)+|\d{2,}/gu) ?? []) {
    let its = split.get(word);
    if (!its) split.set(word, its = termsOf(word));
    for (const term of its) found.push(term);
  }
  return found;
};

const surfaced = (name) => (surface.has(name) || surface.set(name, name), name);

// What people say who do not know the field's word yet. Each is looked up as that word.
const LAY = [
  [/\b(graphics?|video) cards?\b/gi, "gpu"],
  [/\b(mac ?book|macos|apple silicon)\b/gi, "mac"],
  [/\bradeon\b/gi, "amd gpu"],
  [/\bnot a number\b/gi, "nan"],
  [/\b(64|32|16)[- ]?bits?\b/gi, "float$1"],
  [/\bdouble precision\b/gi, "float64"],
  [/\bhalf precision\b/gi, "bfloat16"],
  [/\b(ages|forever)\b/gi, "long slow"],
  [/\b(video|graphics?) (memory|ram)\b/gi, "gpu memory"],
  [/\bvram\b/gi, "gpu memory"],
  [/\bram\b/gi, "memory"],
  [/\boom\b/gi, "out of memory"],
  [/\blr\b/gi, "learning rate"],
  [/\bslopes?\b/gi, "derivative"],
];
// What says "not" in a word, with its apostrophe or without. "Not the same" is what others call a change: word by word, the
// answer to its opposite would be as near.
const NOT = /\b(?:(?:do|does|did|is|are|was|were|has|have|had|ca|wo|could|would|should)n['’]?t)\b/gi;
const NOT_SAME = /\bnot (?:(?:the|always|exactly) )*(?:same|identical|equal)\b/gi;
const reworded = (text) => text.replace(NOT, "not").replace(NOT_SAME, "change");

const plainly = (query) => LAY.reduce((text, [lay, word]) => text.replace(lay, word), query);

// --- the sections --------------------------------------------------------------------------------------------------

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

const WEIGHT = { link: 0.4, answer: 1, error: 0.9, claim: 0.5, name: 0.35, practice: 0.5, section: 1 };

const BOOST = { title: 2.5, asked: 3.5, text: 1, of: 1 }; // how much a term in a field of a section counts
const BOOST_OF_MESSAGE = { ...BOOST, asked: 2.5 }; // a message has an entry, whose text it is
const LONG = { title: 0.7, asked: 0.4, text: 0.7, of: 0.7 }; // and how much less it counts in a long one

// Answers on one library: a query that names none is rather asked of JAX.
const OF_LIBRARY =
  /^answers\/(nnx|nnx-training|nnx-transforms|models-on-devices|optax|equinox-and-optax|equinox-state|solvers|many-solves|blackjax|numpyro|numpyro-chains|orbax|mjx-and-brax|grain-and-checks|pallas)\//;
const DICTIONARY_OF_LIBRARY = /^lookup\/errors-(equinox|flax|nnx|libraries|orbax|samplers|solvers)\//;
const LIBRARY =
  /flax|nnx|linen|haiku|equinox|eqx|optax|diffrax|lineax|optimistix|jaxopt|blackjax|numpyro|mjx|mujoco|brax|maxtext|tunix|orbax|pallas|mosaic|triton|grain|chex|jaxtyping/i;

// The sections by the terms of their fields; ranked by BM25+.
class Index {
  #lists = new Map(); // for a term, of each field: the sections that hold it, each followed by how often
  #lengths = []; // how many terms each section has, of each field
  #means = [];

  // Add the next section: of each field of BOOST, the terms.
  add(fields) {
    const id = this.#lengths.length;
    const lengths = fields.map(() => 0);
    this.#lengths.push(lengths);
    fields.forEach((terms, field) => {
      for (const term of terms) {
        let lists = this.#lists.get(term);
        if (!lists) this.#lists.set(term, lists = fields.map(() => []));
        const list = lists[field];
        if (list[list.length - 2] === id) list[list.length - 1]++;
        else {
          list.push(id, 1);
          lengths[field]++;
        }
      }
    });
  }

  // The sections that hold one of the terms, or a term that begins with the one that is still being typed.
  search(asked, typing, boosts) {
    this.#means = Object.keys(BOOST).map((_, field) =>
      this.#lengths.reduce((sum, lengths) => sum + lengths[field], 0) / this.#lengths.length
    );
    const found = new Map();
    for (const term of asked) {
      const scores = new Map();
      for (const [form, weight] of this.#forms(term, term === typing)) {
        (this.#lists.get(form) ?? []).forEach((list, field) =>
          this.#score(list, weight * Object.values(boosts)[field], field, scores)
        );
      }
      for (const [id, score] of scores) {
        const hit = found.get(id);
        if (!hit) found.set(id, { id, score, queryTerms: [term] });
        else {
          hit.score += score;
          hit.queryTerms.push(term);
        }
      }
    }
    const hits = [...found.values()];
    for (const hit of hits) hit.score *= hit.queryTerms.length;
    return hits.sort((a, b) => b.score - a.score);
  }

  // A term, or what it may become, each with what it counts.
  #forms(term, typing) {
    if (!typing) return [[term, 1]];
    return [...this.#lists.keys()]
      .filter((other) => other.startsWith(term))
      .map((other) => [other, 0.375 * other.length / (other.length + 0.3 * (other.length - term.length))]);
  }

  #score(list, boost, field, scores) {
    const [k, b, d] = [1.2, Object.values(LONG)[field], 1];
    const count = list.length / 2;
    const rare = Math.log(1 + (this.#lengths.length - count + 0.5) / (count + 0.5));
    for (let at = 0; at < list.length; at += 2) {
      const [id, often] = [list[at], list[at + 1]];
      const long = this.#lengths[id][field] / this.#means[field];
      const score = rare * (d + often * (k + 1) / (often + k * (1 - b + b * long)));
      scores.set(id, (scores.get(id) ?? 0) + boost * score);
    }
  }
}

const json = async (file, options) => (await fetch(new URL(`../search/${file}`, import.meta.url), options)).json();
const titled = () => json("titles.json", { cache: "force-cache" }); // search.js has asked for it just before
const PATIENCE = 1200; // milliseconds in which the texts come on a fast line: results then need not change once more

let entries; // of all sections: their titles and wordings, which are an eighth of all that there is to look up

// The sections with these texts, in the order of the titles; or without, as long as the texts are on their way.
const read = async (texts) => {
  const docs = await (entries ??= titled());
  const titles = new Map(
    docs.filter(({ location }) => !location.includes("#")).map((doc) => [doc.location, plain(doc.title)]),
  );
  for (const words of [surface, split]) words.clear(); // what is found rests on these sections alone
  const index = new Index();
  const seen = new Map(); // in how many sections a term is
  const sections = [];
  for (const [at, { location, title, asked = [] }] of docs.entries()) {
    const text = texts?.[at] ?? "";
    if (sections.length % 100 === 99) await new Promise((go) => setTimeout(go)); // and answer what is asked meanwhile
    const page = location.split("#")[0];
    const section = {
      location,
      page,
      kind: kind(location),
      title: plain(title),
      asked,
      text: plain(text),
      get prose() { // of the few that are shown
        return plain(text.replace(/<pre>.*?<\/pre>/gs, " … ")).replace(/(… )+/g, "… ");
      },
    };
    const phrases = [section.title, ...asked].map((phrase) => terms(reworded(phrase)));
    const body = terms(section.text);
    index.add([phrases[0], phrases.slice(1).flat(), body, terms(titles.get(page) ?? "")]);
    section.phrases = phrases.map((phrase) => new Set(phrase));
    for (const term of new Set([body, ...phrases].flat())) seen.set(term, (seen.get(term) ?? 0) + 1);
    sections.push(section);
  }
  // Words as they are written, with their number; names of JAX and its neighbors count most.
  const spoken = new Map();
  for (const [term, count] of seen) spoken.set(surface.get(term), Math.max(count, spoken.get(surface.get(term)) ?? 0));
  for (const { kind, location } of sections) {
    if (kind === "name") {
      for (const name of [location.split("#")[1] ?? "", location.split(".").at(-1)]) {
        spoken.set(name.toLowerCase(), 1e4);
      }
    }
  }
  const rare = (term) => Math.log(1 + sections.length / ((seen.get(term) ?? 0) + 0.5));
  return {
    partial: !texts,
    sections,
    index,
    seen,
    spoken,
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

// --- messages ------------------------------------------------------------------------------------------------------

// What Python says of any code, with JAX or without. A section that has the words of such a message explains it only where it
// shows it; a KeyError, which is no more than a key, only where the traceback shows the call or the key is among its wordings.
const OF_PYTHON =
  /^(?:\w+Error: )?(KeyError$|(?:list|tuple|string) index out of range|name '\w+' is not defined|'(?:bool|dict|float|int|list|module|NoneType|set|str|tuple)' object (?:is not|has no attribute) [\w']+)/;
const explains = ({ title, text, asked }, said, query) =>
  said === "KeyError"
    ? asked.includes(query.trim()) || (title.includes("debug.print") && /\bdebug\.print\(/.test(query))
    : [title, text, ...asked].some((text) => text.includes(said));

const RAISED = /(?:^|[\s(])((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Interrupt|Exit))(?=:|\s*$|\s*\n)/g;

// What a pasted traceback or message says, without the frames and paths of the machine it is from; "" if it is none.
const messageOf = (query) => {
  if (/^[\w.]+$/.test(query)) return "";
  // An assertion without a message has only its line.
  if (/\bAssertionError\s*$/.test(query)) return [...query.matchAll(/^\s*(assert .*)$/gm)].at(-1)?.[1] ?? query;
  const raised = [...query.matchAll(RAISED)];
  if (!raised.length && OF_PYTHON.test(query)) return query;
  if (!raised.length && !/Traceback \(most recent call last\)|File ".*", line \d+/.test(query)) return "";
  return query
    .slice((raised.find(({ index }) => index >= query.lastIndexOf('File "')) ?? raised.at(-1))?.index ?? 0)
    .replace(/-{5,}.*$/s, "")
    .replace(/For simplicity, JAX has removed its internal frames.*$/s, "")
    .replace(/See https?:\S+|\(https?:\S+\)/g, "")
    .replace(/\S*\/\S+\.py(:\d+)*/g, "")
    .replace(/KeyError: ["']?\S+$/s, "KeyError") // the key is the reader's own, and so is the name of a function
    .replace(/\S+(?<!__)\(\) (?=missing \d+ required positional)/, "")
    .trim();
};

// The name that an error misses, as its row under Upgrading has it.
const MISSING = [
  [/module '([\w.]+)' has no attribute '(\w+)'/, "$1.$2"],
  [/cannot import name '(\w+)' from '([\w.]+)'/, "$2.$1"],
  [/No module named '([\w.]+)'/, "$1"],
  [/Array\w*' object has no attribute '(\w+)'/, "arr.$1"],
  [/(?:Error|Warning): ((?:jax|arr)(?:\.\w+)+) (?:is|was|has been) (?:deprecated|removed)/, "$1"],
];

const missing = (message) => {
  for (const [form, name] of MISSING) {
    const found = message.match(form);
    if (found) return name.replace(/\$(\d)/g, (_, group) => found[group]);
  }
  return "";
};

const OF_JAXLIB = /\bjaxlib(?:\.\w+)*\.(?=\w)/g; // in which module a class is, which changes

// What JAX prints, in the form in which a row under Upgrading shows it: of its first line the first 119 characters, the class
// without its module, and nothing that depends on the machine or on the release of jaxlib.
const printed = (message) =>
  message
    .split("\n")[0]
    .replace(/^(?:\w+\.)+(?=\w+:)/, "")
    .replace(OF_JAXLIB, "")
    .replace(/\s+/g, " ")
    .replace(/^(\w+: )?(.{119}).*$/, "$1$2")
    .trim();

const UNEXPECTED = /(\w+)\(\) got an unexpected keyword argument '(\w+)'/;
const ROW = /^lookup\/then-and-now\/#old-/;

// The row of an old name that shows a message, or whose title has the keyword that a function does not take any more.
const rowOf = (message, sections) => {
  const told = printed(message);
  const [, called, keyword] = message.match(UNEXPECTED) ?? [];
  const takes = keyword && new RegExp(`\\b${called}\\((?:\\w+=\\w*,)*${keyword}=`);
  const shows = (row) => (row.shows ??= row.text.replace(OF_JAXLIB, "")).includes(told);
  const rows = sections.filter(({ location }) => ROW.test(location));
  return rows.find((row) => told.split(" ").length > 2 && shows(row)) ?? rows.find(({ title }) => takes?.test(title));
};

// --- names ---------------------------------------------------------------------------------------------------------

let record;
const recorded = async () => {
  try {
    const { releases, names } = await (await fetch(new URL("../names.json", import.meta.url))).json();
    return { releases, names, spelled: new Map(Object.keys(names).map((name) => [name.toLowerCase(), name])) };
  } catch {
    record = undefined; // without it the rest of the search works, and the next name asks again
  }
};

// A public name of any release as a section: the list of names, filtered by it, with its history for a text. Undefined for
// a module that is still there, of which names say little, and for an error over what has always been there.
const released = async (lower, message) => {
  if (!/^jax(\.\w+)+$/.test(lower)) return;
  const known = await (record ??= recorded());
  const name = known?.spelled.get(lower);
  if (!name) return;
  const { says = "", ...facts } = known.names[name];
  const isModule = [...known.spelled.keys()].some((other) => other.startsWith(`${lower}.`));
  if (!facts.gone && (isModule || (message && !facts.since))) return;
  const page = "lookup/names/";
  return {
    page,
    location: `${page}?filter=${name}`,
    title: name,
    prose: `jax: ${told(facts, known.releases)}. ${says}`.trim(),
    kind: "name",
  };
};

// --- ranking -------------------------------------------------------------------------------------------------------

const full = (name) =>
  name
    .replace(/^jnp\./, "jax.numpy.")
    .replace(/^np\./, "numpy.")
    .replace(/^(lax|nn|random|tree|tree_util|scipy)\./, "jax.$1.");

// How well a query is the wording of a section that is nearest to it, and the next one: from 0, no term in common, to 1, the
// same terms.
const likeness = (asked, phrases, rare) => {
  let [best, next] = [0, 0];
  for (const phrase of phrases) {
    let [common, all] = [0, 0];
    for (const term of asked) {
      all += rare(term);
      if (phrase.has(term)) common += rare(term);
    }
    for (const term of phrase) if (!asked.has(term)) all += 0.5 * rare(term);
    const its = all ? common / all : 0;
    if (its > best) [best, next] = [its, best];
    else if (its > next) next = its;
  }
  return [best, next];
};

// The part of a query, by the rarity of its terms, that a section holds.
const share = (asked, matched, rare) => {
  let [has, all] = [0, 0];
  for (const term of asked) {
    all += rare(term);
    if (matched.has(term)) has += rare(term);
  }
  return all ? has / all : 0;
};

// The part of a query's sequences of five words that a text holds literally: much of a message, little of a question.
const literal = (query, text) => {
  const words = query.toLowerCase().match(/[\p{L}_][\w.]*/gu) ?? [];
  const runs = words.slice(4).map((_, at) => words.slice(at, at + 5).join(" "));
  const held = ` ${(text.toLowerCase().match(/[\p{L}_][\w.]*/gu) ?? []).join(" ")} `;
  return runs.length ? runs.filter((run) => held.includes(run)).length / runs.length : 0;
};

// Whether a section outside of the dictionary, as those on libraries are, shows a message.
const shows = (hit, message) => hit?.share > 0.75 && literal(message, `${hit.section.title} ${hit.section.text}`) > 0.3;

// Whether a section answers a message without an entry: it shows the message, or one of its wordings is like it. A module or an
// attribute that is missing (`name`) is the matter itself, so more has to agree.
const answered = (hit, message, name) => hit?.likeness > 0.6 || (!name && hit?.worded > 0.55) || shows(hit, message);

// What Python says of a call that does not fit a function. A section on a library explains it only for a function that it
// names; for what a class of the reader's own takes, it names the class Net. It explains nothing that JAX has not.
const OF_CALL =
  /(\S+\(\)) (?:missing \d+ required (keyword-only arguments?: '\w+')?|got an unexpected keyword|takes \d+ positional)/;
const ofCall = ({ location, text, asked }, query) => {
  if (!DICTIONARY_OF_LIBRARY.test(location)) return true;
  if (/module 'jax\b/.test(query)) return false;
  const [, called, keyword] = query.match(OF_CALL) ?? [];
  if (!called) return true;
  const own = called.replace(/^\w+(?=\.__\w+__\(\)$)/, "Net");
  return [text, ...asked].some((text) =>
    (text.includes(called) || text.includes(own)) && (!keyword || text.includes(keyword))
  );
};

// The answer on a library that has nearly a message among its wordings, instead of an entry that does not show the message.
const worded = (hits, entry) => {
  const [nearest] = hits.filter(({ section }) => OF_LIBRARY.test(section.location)).sort((a, b) => b.worded - a.worded);
  const shown = entry?.literal > 0.1 || entry?.worded > Math.max(0.5, nearest?.worded - 0.3);
  return nearest?.worded > 0.8 && !shown ? nearest : entry;
};

const rank = ({ sections, index, seen, rare }, query, message) => {
  let asked = [...new Set(terms(message || reworded(query)))];
  if (asked.length > TERMS) {
    asked = asked.sort((a, b) => rare(b) - rare(a)).filter((term) => seen.has(term)).slice(0, TERMS);
  }
  const known = asked.filter((term) => seen.has(term));
  const typing = !message && /\w$/.test(query) ? asked.at(-1) : undefined;
  const hits = index.search(
    asked,
    typing?.length > 2 && !seen.has(typing) ? typing : undefined,
    message ? BOOST_OF_MESSAGE : BOOST,
  );
  // What is unknown in a message is the reader's own; in a question it is what the site says nothing about.
  const words = new Set(message ? known : asked);
  const ofJax = !LIBRARY.test(query);
  for (const hit of hits.slice(0, 150)) {
    const section = sections[hit.id];
    hit.section = section;
    hit.share = share(words, new Set(hit.queryTerms), rare);
    const [best, next] = likeness(new Set(asked), section.phrases, rare);
    hit.worded = message ? likeness(words, section.phrases, rare)[0] : best;
    hit.likeness = best;
    hit.literal = section.kind === "error" ? literal(message || query, section.text) : 0;
    if (!ofCall(section, query)) hit.score *= 0.1;
    if (ofJax && OF_LIBRARY.test(section.location)) hit.score *= 0.7;
    hit.score *= WEIGHT[section.kind] * (1 + hit.literal) * (0.4 + hit.share) * (1 + 3 * (best + 0.4 * next) ** 1.5);
  }
  return hits.slice(0, 150).sort((a, b) => b.score - a.score);
};

// --- answers -------------------------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

// The part of a text with the most matches, or its beginning, and the matches marked.
const excerpt = (text, matched, beginning) => {
  const at = [...text.matchAll(/[\p{L}_][\w.]*/gu)].filter(([word]) => terms(word).some((term) => matched.has(term)));
  let [begin, most] = [0, 0];
  for (const { index } of beginning ? [] : at) {
    const count = at.filter((other) => other.index >= index && other.index < index + EXCERPT).length;
    if (count > most) [begin, most] = [index, count];
  }
  begin = begin < EXCERPT / 2 ? 0 : text.lastIndexOf(" ", begin - 30) + 1;
  const end = text.length > begin + EXCERPT ? text.lastIndexOf(" ", begin + EXCERPT) : text.length;
  let [html, done] = [begin ? "… " : "", begin];
  for (const { index, 0: word } of at) {
    if (index < begin || index + word.length > end) continue;
    html += `${escaped(text.slice(done, index))}<mark data-md-highlight>${escaped(word)}</mark>`;
    done = index + word.length;
  }
  return html + escaped(text.slice(done, end)) + (end < text.length ? " …" : "");
};

const shown = ({ section, queryTerms = [] }, score) => ({
  location: section.location,
  title: escaped(section.title),
  text: excerpt(section.prose || section.text, new Set(queryTerms), section.kind === "answer"),
  score,
  terms: Object.fromEntries(queryTerms.map((term) => [surface.get(term) ?? term, true])),
});

// Neighbors of one page stand together under its title, each visible; the order stays that of the ranking.
const grouped = (hits, pages) => {
  const groups = [];
  hits.forEach((hit, rank) => {
    const { page } = hit.section;
    const score = hits.length - rank;
    let group = groups.at(-1);
    if (group?.page !== page) {
      group = { page, items: [{ ...shown({ section: pages.get(page) ?? hit.section }, 0), text: "" }] };
      groups.push(group);
    }
    if (hit.section.location !== page) group.items.push(shown(hit, score));
    else group.items[0] = shown(hit, score);
  });
  return groups.map(({ items }) => items);
};

const NEAREST = " The nearest sections are:";

// The shortest of the names that end with this one.
const last = (byEnd, name) =>
  [...byEnd.keys()]
    .filter((end) => end?.endsWith(`.${name}`) && !end.startsWith("old-"))
    .sort((a, b) => a.length - b.length)
    .map((end) => byEnd.get(end))[0];

let whole;
const readAll = async (before) => {
  await (entries ??= titled()); // on a slow line they are here long before the texts
  const texts = await json("texts.json");
  if (texts.length !== (await entries).length) entries = json("titles.json", { cache: "reload" }); // of an older site
  await before;
  return read(texts);
};

export const find = async (query, index = whole ??= readAll()) => {
  const site = await index;
  const { partial, sections, byEnd } = site;
  site.pages ??= new Map(
    sections.filter(({ location, page }) => location === page).map((section) => [section.page, section]),
  );
  const message = messageOf(query.trim());
  const typed = query.trim();
  const said = message ? typed : plainly(typed);
  const text = message || partial ? said : corrected(said, site);
  let hits = rank(site, text, message);
  const end = (message || /'/.test(text) ? missing(message || text) : full(text)).toLowerCase();
  const quoted = message || /['`:]/.test(text);
  const row = quoted ? rowOf(message || text, sections) : undefined;
  const named = byEnd.get(text.toLowerCase()) ?? byEnd.get(end);
  const exact = (!quoted && named) || byEnd.get(`old-${end}`) || (!message && (row ?? named ?? last(byEnd, end)));
  const name = exact || partial ? undefined : await released(end, message || /'/.test(text));
  const unknown = text.split(/\s+/).filter((word) => isUnknown(word, site));
  let note = "";
  // A message has an entry of its own, or none; what else is near comes after it.
  const ofPython = message.match(OF_PYTHON)?.[1];
  const found = hits.find(({ section, share, literal }) =>
    ofPython ? explains(section, ofPython, query) : section.kind === "error" && ofCall(section, query) &&
      (message ? share > 0.75 || (share > 0.5 && literal > 0.02) : literal > 0.4)
  );
  const entry = message ? worded(hits, found) : found;
  const own = exact || (!name && !entry && row);
  if (own) hits = [{ section: own, queryTerms: terms(text) }, ...hits.filter(({ section }) => section !== own)];
  else if (name) hits = [{ section: name, queryTerms: terms(text) }, ...hits];
  else if (entry) hits = [entry, ...hits.filter((hit) => hit !== entry)];
  else if (unknown.length && !message) {
    note = `No page has ${unknown.map((word) => `“${word}”`).join(" or ")}.${NEAREST}`;
  } else if (ofPython || message && !answered(hits[0], message, end)) {
    note = `This message has no entry here.${NEAREST}`;
  } else if (!message && !(hits[0]?.share >= 0.45)) {
    note = `Nothing here answers that as asked.${NEAREST}`;
  }
  if (!hits.length) note = note.replace(NEAREST, "");
  if (partial) note = "Found in titles and questions; the texts are still on their way.";
  if (text !== said) note = `No section has “${typed}”. These have “${text}”:`;
  hits = hits.slice(0, SHOWN);
  return { items: grouped(hits, site.pages), suggest: message ? [] : completed(typed, site), note, partial };
};

// By how many letters inserted, left out, changed or swapped with the next one two words differ.
const distance = (one, other) => {
  let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i++) {
    const now = [i];
    for (let j = 1; j <= other.length; j++) {
      now[j] = Math.min(last[j] + 1, now[j - 1] + 1, last[j - 1] + (one[i - 1] !== other[j - 1]));
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        now[j] = Math.min(now[j], before[j - 2] + 1);
      }
    }
    [before, last] = [last, now];
  }
  return last[other.length];
};

// The term of the site that an unknown one was most probably meant to be; undefined if none is near.
const nearest = (unknown, words) => {
  const most = unknown.length > 7 ? 2 : 1;
  let best, least = most + 1;
  for (const [known, count] of words) {
    if (Math.abs(known.length - unknown.length) > most || !/[a-z]/.test(known)) continue;
    const apart = distance(unknown, known);
    if (apart < least || (apart === least && count > words.get(best))) [best, least] = [known, apart];
  }
  return best;
};

// Whether no section has a word, nor one that it may become when it is typed to its end.
const isUnknown = (word, { seen, spoken }) => {
  const found = terms(word);
  return /^\p{L}{4,}\W?$/u.test(word) && found.length > 0 && !found.some((term) => seen.has(term)) &&
    ![...spoken.keys()].some((known) => known.startsWith(word.toLowerCase()));
};

// A query with each word that the site doesn't know replaced by the one it was probably meant to be.
const corrected = (text, { seen, spoken }) =>
  text.replace(/[\w.]{4,}/g, (word) => {
    const typed = word.toLowerCase();
    if (!terms(word).some((term) => !seen.has(term)) || spoken.has(typed) || /^[\d.]+$/.test(word)) return word;
    for (const known of spoken.keys()) if (known.startsWith(typed)) return word; // not typed to its end
    return nearest(typed, spoken) ?? word;
  });

// The last word that is typed, completed for the theme's suggestion in the field: to the end of a word that begins with it, or
// of one part of a name; to nothing where the word itself is met more often.
const completed = (text, { seen }) => {
  const last = text.split(/[\s-]+/).at(-1);
  if (last.length < 3) return [];
  let [best, most] = ["", seen.get(terms(last)[0]) ?? 0];
  for (const [term, count] of seen) {
    const word = surface.get(term) ?? term;
    if (count > most && word.startsWith(last) && word.length > last.length) [best, most] = [word, count];
  }
  const end = best.indexOf(".", last.length);
  if (end < 0) return best ? [best] : [];
  return end === last.length ? [] : [best.slice(0, end)];
};

if (typeof WorkerGlobalScope !== "undefined") {
  const pause = new Promise((go) => setTimeout(go, PATIENCE));
  const first = read();
  let here = Promise.all([first, pause]).then(([site]) => site);
  whole = readAll(first);
  for (const lost of [here, whole]) lost.catch(() => {}); // the first query says so
  let asked;
  const answer = async () => {
    const [query, site] = [asked, here];
    // An uncaught error makes search.js start another worker.
    const found = await find(query, site).catch(reportError);
    if (found && query === asked && site === here) postMessage({ ...found, query }); // no later query, no better answer
  };
  addEventListener("message", ({ data }) => {
    asked = data;
    answer();
  });
  whole.catch(() => {}).then(() => {
    here = whole;
    if (asked) answer();
  });
}
