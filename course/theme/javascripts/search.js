// The theme's search is answered by find.js, which comes when the field is entered, as does what it looks up.
window.Worker = new Proxy(Worker, {
  construct: (Real, [address, ...more]) =>
    /\/workers\/search\./.test(address) ? new Search() : new Real(address, ...more),
});

const beside = document.currentScript.src;

// In the place of the theme's worker: its messages are 0 (here is the index), 1 (ready), 2 (a query) and 3 (results).
// Those of MaterialX have an id, which the answer has too, and hold the query in an object.
class Search extends EventTarget {
  #worker;
  #request;
  #loaded = false;

  constructor() {
    super();
    setTimeout(() => this.#emit({ type: 1 })); // when the theme listens
    document.addEventListener("focusin", ({ target }) => target.matches(".md-search__input") && this.#load());
  }

  postMessage({ id, type, data }) {
    if (type !== 2) return setTimeout(() => this.#emit({ id, type: 1 }));
    const request = this.#request = { id, query: data.query ?? data };
    // Not at once: until the theme has noted that the field is empty, it would say that nothing matches.
    if (!request.query.trim()) return setTimeout(() => request === this.#request && this.#answer({ items: [] }));
    this.#load();
    const meta = document.querySelector(".md-search-result__meta");
    if (!this.#loaded && meta) meta.textContent = "Loading the search …";
    this.#worker.postMessage(request.query);
  }

  #load(again = true) {
    if (this.#worker) return;
    // What the worker looks up first comes at the same time as the worker, not after it.
    fetch(new URL("../search/titles.json", beside)).catch(() => {});
    const worker = this.#worker = new Worker(new URL("find.js", beside), { type: "module" });
    worker.onmessage = ({ data }) => {
      this.#loaded = true;
      if (data.query === this.#request.query) this.#answer(data);
    };
    worker.onerror = () => {
      worker.terminate();
      if (worker !== this.#worker) return;
      this.#worker = undefined; // it did not come, nor what it looks up: ask for both once more, and with the next query
      if (again && this.#request?.query.trim()) {
        this.#load(false);
        this.#worker.postMessage(this.#request.query);
      } else if (this.#request) {
        this.#answer({ items: [], note: "The search could not be loaded. Type on to try again." });
      }
    };
  }

  #answer(data) {
    const none = data.partial && !data.items.length;
    showNote(none ? "Not in titles and questions; the texts are still on their way." : data.note ?? "");
    this.#emit({ id: this.#request.id, type: 3, data });
  }

  #emit(message) {
    this.dispatchEvent(new MessageEvent("message", { data: message }));
  }
}

// Show a note about the results above them.
const showNote = (text) => {
  const list = document.querySelector(".md-search-result__list");
  let note = document.querySelector(".live-search-note");
  if (!note && list) {
    note = Object.assign(document.createElement("p"), { className: "live-search-note" });
    note.setAttribute("role", "status");
    list.before(note);
  }
  if (note) note.textContent = text;
};

// A page that was found for its sections is their heading, no link of its own: a click on it opens the first of them, and the
// arrow keys meet each result once.
const lead = ([title, section]) => {
  if (!section || !title.querySelector("[data-md-score='0.00']")) return;
  const heading = document.createElement("div"); // a link without an address stops the theme's instant navigation
  heading.className = `${title.className} live-search-heading`;
  heading.append(...title.childNodes);
  heading.onclick = () => section.click();
  title.replaceWith(heading);
};
document.addEventListener("DOMContentLoaded", () => {
  // A phone's own Back closes the search, which covers the page there.
  const toggle = document.getElementById("__search");
  let watcher;
  toggle?.addEventListener("change", () => {
    watcher?.destroy();
    watcher = toggle.checked && window.CloseWatcher ? new CloseWatcher() : undefined;
    if (watcher) watcher.onclose = () => toggle.checked && toggle.click();
  });
  // The theme draws a completion behind what is typed, of which it may know an earlier state, and as wide as it gets.
  const field = document.querySelector(".md-search__input");
  const completion = document.querySelector(".md-search__suggest");
  const fit = () => {
    const text = completion.textContent.replaceAll("\u00a0", " ");
    const fits = [field, completion].every((part) => part.scrollWidth <= part.clientWidth);
    completion.style.visibility = fits && text.startsWith(field.value) ? "" : "hidden";
  };
  if (field && completion) {
    new MutationObserver(fit).observe(completion, { childList: true });
    field.addEventListener("input", fit);
  }
  const list = document.querySelector(".md-search-result__list");
  if (list) {
    new MutationObserver(() => [...list.children].forEach((item) => lead(item.querySelectorAll("a[href]")))).observe(
      list,
      { childList: true },
    );
  }
});

// What invites to search opens the search, which has a field of its own on a phone, with the words that it holds.
document.addEventListener("click", ({ target }) => {
  const words = target.closest("[data-live-ask]")?.dataset.liveAsk;
  if (words === undefined) return;
  const toggle = document.getElementById("__search");
  if (!toggle.checked) toggle.click();
  const field = document.querySelector(".md-search__input");
  field.focus();
  if (!words) return;
  field.value = words;
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

// The last query of a tab is there again, with its results, when the search is opened again; typing replaces it.
const query = {
  get last() {
    try {
      return sessionStorage.getItem("live-query") ?? "";
    } catch {
      return "";
    }
  },
  set last(words) {
    try {
      sessionStorage.setItem("live-query", words);
    } catch {
      // the next page does not know it
    }
  },
};
document.addEventListener(
  "input",
  ({ target }) => target.matches(".md-search__input") && (query.last = target.value),
);
document.addEventListener("reset", ({ target }) => target.matches(".md-search__form") && (query.last = ""));
document.addEventListener("focusin", ({ target }) => {
  if (!target.matches(".md-search__input")) return;
  if (!target.value && query.last) {
    target.value = query.last;
    target.dispatchEvent(new Event("input", { bubbles: true }));
  }
  setTimeout(() => target.select()); // after a click has set the cursor
});

// The theme listens for keys; a paste from a menu or on a phone gives it none.
document.addEventListener("input", ({ target }) => {
  if (target.matches(".md-search__input")) target.dispatchEvent(new Event("keyup", { bubbles: true }));
});
