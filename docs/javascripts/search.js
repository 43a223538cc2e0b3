// Two things that readers search for, and the theme's search is not made for.
window.Worker = class extends Worker {
  #separator;
  #name;

  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => data.type === 3 && this.#putFirst(data.data.items));
  }

  postMessage(message) {
    if (message.type === 0) this.#separator = new RegExp(message.data.config.separator);
    if (message.type === 2) message = { ...message, data: this.#asked(message.data.trim()) };
    super.postMessage(message);
  }

  // A pasted error message: the theme completes every word and puts a match in a title above all others, which suits a
  // few words, and makes a sentence find anything. Of a sentence, whole words are looked up in the text.
  #asked(query) {
    this.#name = query
      .replace(/^jnp\./, "jax.numpy.")
      .replace(/^np\./, "numpy.")
      .replace(/^(lax|nn|random|tree)\./, "jax.$1.");
    const words = query.split(this.#separator).flatMap((part) => part.match(/[a-z]\w{2,}/gi) ?? []);
    if (words.length < 4 || this.#name.match(/^[\w.]+$/)) return query;
    this.#name = this.#missing(query);
    return [...new Set(words)].map((word) => `text:${word}^1`).join(" ");
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
  // that JAX has no more has a row in "Then and now".
  #putFirst(pages) {
    for (const anchor of [`#${this.#name}`, `#old-${this.#name}`]) {
      const entry = (section) => section.location.endsWith(anchor);
      const page = pages.find((page) => page.some(entry));
      if (!page) continue;
      pages.unshift(...pages.splice(pages.indexOf(page), 1));
      page.unshift(...page.splice(page.findIndex(entry), 1));
      return;
    }
  }
};
