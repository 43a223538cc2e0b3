// The theme's search, asked and answered through find.js, which comes with the first query.
const beside = document.currentScript.src;
window.Worker = class extends Worker {
  #index;
  #find;
  #coming;

  constructor(...given) {
    super(...given);
    this.addEventListener("message", ({ data }) => data.type === 3 && this.#find?.answered(data.data.items));
  }

  postMessage(message) {
    if (message.type === 0) this.#index = message.data;
    if (message.type !== 2 || !message.data.trim()) return super.postMessage(message);
    this.#coming ??= import(new URL("find.js", beside)).then(({ Find }) => (this.#find = new Find(this.#index)));
    this.#coming.then(
      (find) => super.postMessage({ ...message, data: find.asked(message.data.trim()) }),
      () => {
        // It did not come: the theme answers alone, and the next query asks for it again.
        this.#coming = undefined;
        super.postMessage(message);
      },
    );
  }
};
