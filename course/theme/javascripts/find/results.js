// Results as the theme shows them: by page, each with an excerpt in which what was found is marked.
import { spelling, terms } from "./words.js";

const EXCERPT = 260; // characters

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

const shown = ({ section, matched = [] }, score) => ({
  location: section.location,
  title: escaped(section.title),
  text: excerpt(section.prose || section.text, new Set(matched), section.kind === "answer"),
  score,
  terms: Object.fromEntries(matched.map((term) => [spelling.get(term) ?? term, true])),
});

// Neighbors of one page stand together under its title, each visible; the order stays that of the ranking.
export const grouped = (hits, pages) => {
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
