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
    return words.length < 4 || this.#name.match(/^[\w.]+$/)
      ? query
      : [...new Set(words)].map((word) => `text:${word}^1`).join(" ");
  }

  // A name typed in full: its entry in the index of names is the first result, its page the first of the pages.
  #putFirst(pages) {
    const entry = (section) => section.location.endsWith(`#${this.#name}`);
    const page = pages.find((page) => page.some(entry));
    if (!page) return;
    pages.unshift(...pages.splice(pages.indexOf(page), 1));
    page.unshift(...page.splice(page.findIndex(entry), 1));
  }
};
