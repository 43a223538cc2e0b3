// What readers search for, and the theme's search is not made for: names and error messages. Loaded with the first query.
const SECTIONS = 6;

export class Find {
  #separator;
  #entries; // the titles of the entries of the error dictionary, by location
  #name;
  #words; // of a pasted error message

  constructor({ config, docs }) {
    this.#separator = new RegExp(config.separator);
    const entries = docs.filter(({ location }) => /^debug\/errors.*#/.test(location));
    this.#entries = new Map(entries.map(({ location, title }) => [location, title]));
  }

  // A pasted error message: the theme completes every word and puts a match in a title above all others, which suits a
  // few words, and makes a sentence find anything. Of a sentence, whole words are looked up in the text.
  asked(query) {
    this.#name = query
      .replace(/^jnp\./, "jax.numpy.")
      .replace(/^np\./, "numpy.")
      .replace(/^(lax|nn|random|tree)\./, "jax.$1.");
    const message = query
      .replace(/For simplicity, JAX has removed its internal frames.*/, "")
      .replace(/^KeyError: .*/, "KeyError"); // the key is the reader's own
    const parts = message.split(this.#separator).flatMap(words);
    const pasted = !/^[\w.]+$/.test(query) && (parts.length > 3 || /(Error|Exception|Warning)\b/.test(query));
    this.#words = pasted && new Set(words(message));
    if (!pasted) return query.replace(/^jax\.(?=\w)/, ""); // which is on every page, and would find them all
    this.#name = this.#missing(message);
    return [...new Set(parts)].map((word) => `text:${word}^1`).join(" ");
  }

  // Of each page the best sections: the theme prepares all that it is given, which takes longer than finding them.
  answered(pages) {
    this.#putFirst(pages);
    for (const page of pages) {
      const best = page.filter(({ location }, rank) => rank < SECTIONS || !location.includes("#"));
      page.splice(0, page.length, ...best);
    }
  }

  // The name that an error misses, as its row in "Then and now" has it.
  #missing(message) {
    const forms = {
      "$1.$2": /.*module '([\w.]+)' has no attribute '(\w+)'.*/s,
      "$2.$1": /.*cannot import name '(\w+)' from '([\w.]+)'.*/s,
      "$1": /.*No module named '([\w.]+)'.*/s,
      "arr.$1": /.*Array\w*' object has no attribute '(\w+)'.*/s,
    };
    const form = Object.keys(forms).find((form) => forms[form].test(message));
    return form ? message.replace(forms[form], form) : message;
  }

  // A name typed in full: its entry in the index of names is the first result, its page the first of the pages. A name
  // that JAX has no more has a row in "Then and now", to which the errors lead that miss it; all others lead to their
  // entry of the dictionary. It gets the best score, too: Enter goes there, and it is shown without unfolding anything.
  #putFirst(pages) {
    const all = pages.flat();
    const [name, old] = [`#${this.#name}`, `#old-${this.#name}`];
    const ends = this.#words ? [old, this.#entry(all)] : [name, old];
    const first = ends.filter(Boolean).find((end) => all.some(({ location }) => location.endsWith(end)));
    if (!first) return;
    const found = ({ location }) => location.endsWith(first);
    const page = pages.find((page) => page.some(found));
    const best = Math.max(...all.map(({ score }) => score));
    pages.unshift(...pages.splice(pages.indexOf(page), 1));
    page.unshift(...page.splice(page.findIndex(found), 1));
    page[0].score = best + 1;
  }

  // The entry of the error dictionary for a pasted message: one that holds about as many of its words as anything does.
  // The words of its title, which are those that every such message has, count more. The dictionary's pages have half
  // the weight of others in the index, and the theme counts what stands before a page's first section up to 2.5 times.
  #entry(sections) {
    let [best, most] = ["", 0];
    for (const { location, score } of sections) {
      const title = words(this.#entries.get(location) ?? "");
      const share = title.filter((word) => this.#words.has(word)).length / (title.length || 1);
      const worth = title.length ? 2 * score * (1 + share) ** 2 : 0.9 * (location.includes("#") ? score : score / 2.5);
      if (worth > most) [best, most] = [title.length ? location : "", worth];
    }
    return best;
  }
}

const words = (text) => text.match(/[a-z]\w{2,}/gi) ?? [];
