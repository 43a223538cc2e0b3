// The order of the results: how well each section fits a query or a message.
import { BOOST, BOOST_OF_MESSAGE } from "./index.js";
import { ofCall } from "./messages.js";
import { WEIGHT } from "./sections.js";
import { terms, withoutContractions } from "./words.js";

const TERMS = 30; // of a long query, the rarest

// Answers on one library: a query that names none is rather about JAX.
const OF_LIBRARY =
  /^answers\/(nnx|nnx-training|nnx-transforms|models-on-devices|optax|equinox-and-optax|equinox-state|solvers|many-solves|blackjax|numpyro|numpyro-chains|orbax|mjx-and-brax|grain-and-checks|pallas)\//;
const LIBRARY =
  /flax|nnx|linen|haiku|equinox|eqx|optax|diffrax|lineax|optimistix|jaxopt|blackjax|numpyro|mjx|mujoco|brax|maxtext|tunix|orbax|pallas|mosaic|triton|grain|chex|jaxtyping/i;

// How well a query is the wording of a section that is nearest to it, and the next one: from 0, no term in common, to 1, the
// same terms.
const likeness = (query, phrases, rare) => {
  let [best, next] = [0, 0];
  for (const phrase of phrases) {
    let [common, all] = [0, 0];
    for (const term of query) {
      all += rare(term);
      if (phrase.has(term)) common += rare(term);
    }
    for (const term of phrase) if (!query.has(term)) all += 0.5 * rare(term);
    const its = all ? common / all : 0;
    if (its > best) [best, next] = [its, best];
    else if (its > next) next = its;
  }
  return [best, next];
};

// The part of a query, by the rarity of its terms, that a section holds.
const share = (query, matched, rare) => {
  let [has, all] = [0, 0];
  for (const term of query) {
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
export const answersMessage = (hit, message, name) =>
  hit?.likeness > 0.6 || (!name && hit?.worded > 0.55) || shows(hit, message);

// The answer on a library that has nearly a message among its wordings, instead of an entry that does not show the message.
export const preferAnswer = (hits, entry) => {
  const [nearest] = hits.filter(({ section }) => OF_LIBRARY.test(section.location)).sort((a, b) => b.worded - a.worded);
  const shown = entry?.literal > 0.1 || entry?.worded > Math.max(0.5, nearest?.worded - 0.3);
  return nearest?.worded > 0.8 && !shown ? nearest : entry;
};

export const rank = ({ sections, index, frequency, rare }, query, message) => {
  let queryTerms = [...new Set(terms(message || withoutContractions(query)))];
  if (queryTerms.length > TERMS) {
    queryTerms = queryTerms.sort((a, b) => rare(b) - rare(a)).filter((term) => frequency.has(term)).slice(0, TERMS);
  }
  const known = queryTerms.filter((term) => frequency.has(term));
  const typing = !message && /\w$/.test(query) ? queryTerms.at(-1) : undefined;
  const hits = index.search(
    queryTerms,
    typing?.length > 2 && !frequency.has(typing) ? typing : undefined,
    message ? BOOST_OF_MESSAGE : BOOST,
  );
  // What is unknown in a message is the reader's own; in a question it is what the site says nothing about.
  const words = new Set(message ? known : queryTerms);
  const ofJax = !LIBRARY.test(query);
  for (const hit of hits.slice(0, 150)) {
    const section = sections[hit.id];
    hit.section = section;
    hit.share = share(words, new Set(hit.matched), rare);
    const [best, next] = likeness(new Set(queryTerms), section.phrases, rare);
    hit.worded = message ? likeness(words, section.phrases, rare)[0] : best;
    hit.likeness = best;
    hit.literal = section.kind === "error" ? literal(message || query, section.text) : 0;
    if (!ofCall(section, query)) hit.score *= 0.1;
    if (ofJax && OF_LIBRARY.test(section.location)) hit.score *= 0.7;
    hit.score *= WEIGHT[section.kind] * (1 + hit.literal) * (0.4 + hit.share) * (1 + 3 * (best + 0.4 * next) ** 1.5);
  }
  return hits.slice(0, 150).sort((a, b) => b.score - a.score);
};
