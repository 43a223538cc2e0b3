// Finds sections of the site: by words and their other forms, by whole questions, by names, and by error messages.
import "./vendor/stemmer.js"; // so that it comes together with find/words.js, which needs it, not after it
import { explaining, messageOf, missing, OF_PYTHON, ofCall, rowOf } from "./find/messages.js";
import { answersMessage, preferAnswer, rank } from "./find/ranking.js";
import { released } from "./find/released.js";
import { grouped } from "./find/results.js";
import { read, readAll } from "./find/sections.js";
import { completed, corrected, isUnknown } from "./find/typing.js";
import { replaceLayTerms, terms } from "./find/words.js";

const SHOWN = 12; // results
const PATIENCE = 1200; // milliseconds in which the texts come on a fast line: results then need not change once more

const full = (name) =>
  name
    .replace(/^jnp\./, "jax.numpy.")
    .replace(/^np\./, "numpy.")
    .replace(/^(lax|nn|random|tree|tree_util|scipy)\./, "jax.$1.");

// The shortest of the names that end with this one.
const last = (byEnd, name) =>
  [...byEnd.keys()]
    .filter((end) => end?.endsWith(`.${name}`) && !end.startsWith("old-"))
    .sort((a, b) => a.length - b.length)
    .map((end) => byEnd.get(end))[0];

// What a query is the name of: a section, by its anchor or as an old name; or a public name that no section is about.
const named = async ({ byEnd, partial, sections }, text, message) => {
  const end = (message || /'/.test(text) ? missing(message || text) : full(text)).toLowerCase();
  const quoted = message || /['`:]/.test(text);
  const row = quoted ? rowOf(message || text, sections) : undefined;
  const section = byEnd.get(text.toLowerCase()) ?? byEnd.get(end);
  const exact = (!quoted && section) || byEnd.get(`old-${end}`) || (!message && (row ?? section ?? last(byEnd, end)));
  const name = exact || partial ? undefined : await released(end, message || /'/.test(text));
  return { end, exact, row, name };
};

// The hit that explains a message, or a question that quotes one.
const entryOf = (hits, query, message, ofPython) => {
  const found = ofPython
    ? explaining(hits, ofPython, query)
    : hits.find(({ section, share, literal }) =>
      section.kind === "error" && ofCall(section, query) &&
      (message ? share > 0.75 || (share > 0.5 && literal > 0.02) : literal > 0.4)
    );
  return message ? preferAnswer(hits, found) : found;
};

let whole; // the sections with their texts

export const find = async (query, index = whole ??= readAll()) => {
  const site = await index;
  site.pages ??= new Map(
    site.sections.filter(({ location, page }) => location === page).map((section) => [section.page, section]),
  );
  const typed = query.trim();
  const message = messageOf(typed);
  const translated = message ? typed : replaceLayTerms(typed);
  const text = message || site.partial ? translated : corrected(translated, site);
  const hits = rank(site, text, message);
  const ofPython = message.match(OF_PYTHON)?.[1];
  const { end, exact, row, name } = await named(site, text, message);
  const entry = entryOf(hits, query, message, ofPython);
  const section = exact || name || (!entry && row);
  const first = section ? { section, matched: terms(text) } : entry;
  const unknown = text.split(/\s+/).filter((word) => isUnknown(word, site));
  let note = "";
  if (site.partial) note = "Found in titles and questions; the texts are still on their way.";
  else if (text !== translated) note = `No section has “${typed}”. These have “${text}”:`;
  else if (!first) {
    if (unknown.length && !message) note = `No page has ${unknown.map((word) => `“${word}”`).join(" or ")}.`;
    // A message has an entry of its own, or none; what else is near comes after it.
    else if (ofPython || message && !answersMessage(hits[0], message, end)) note = "This message has no entry here.";
    else if (!message && !(hits[0]?.share >= 0.45)) note = "Nothing here answers that as asked.";
    if (note && hits.length) note += " The nearest sections are:";
  }
  const ordered = first ? [first, ...hits.filter((hit) => hit !== first && hit.section !== section)] : hits;
  return {
    items: grouped(ordered.slice(0, SHOWN), site.pages),
    suggest: message ? [] : completed(typed, site),
    note,
    partial: site.partial,
  };
};

if (typeof WorkerGlobalScope !== "undefined") {
  const pause = new Promise((go) => setTimeout(go, PATIENCE));
  const first = read();
  let current = Promise.all([first, pause]).then(([site]) => site);
  whole = readAll(first);
  for (const lost of [current, whole]) lost.catch(() => {}); // the first query says so
  let latest;
  const answer = async () => {
    const [query, site] = [latest, current];
    // An uncaught error makes search.js start another worker.
    const found = await find(query, site).catch(reportError);
    if (found && query === latest && site === current) postMessage({ ...found, query }); // no later query, no better answer
  };
  addEventListener("message", ({ data }) => {
    latest = data;
    answer();
  });
  whole.catch(() => {}).then(() => {
    current = whole;
    if (latest) answer();
  });
}
