// A pasted error message, for the theme's search: it completes every word and puts a match in a title above all others,
// which suits a few words, and makes a sentence find anything. Of a sentence, whole words are looked up in the text.
window.Worker = class extends Worker {
  #separator;

  postMessage(message) {
    if (message.type === 0) this.#separator = new RegExp(message.data.config.separator);
    const words = message.type === 2 ? message.data.split(this.#separator).flatMap((part) => part.match(/[a-z]\w{2,}/gi) ?? []) : [];
    if (words.length < 4) super.postMessage(message);
    else super.postMessage({ ...message, data: [...new Set(words)].map((word) => `text:${word}^1`).join(" ") });
  }
};
