// What a block gave on the reader's machine, above what is published of it.
import { element, Output } from "./output.js";

export class Result {
  #status = element("p", { className: "live-note", role: "status" });
  #place = element("div");
  #output;

  // Before the published result, for a block of this name; figures are described by these words.
  constructor(published, name, words) {
    this.words = words;
    this.element = element(
      "div",
      { className: "live-result live-yours", role: "group", ariaLabel: `Your output of ${name}` },
      this.#status,
      this.#place,
    );
    published.before(this.element);
  }

  // Begin anew; gives the output that a kernel fills, which may have begun out of sight.
  begin(output) {
    this.element.querySelector(".live-verdict")?.remove();
    this.#status.textContent = "Running …";
    if (output) {
      this.#place.replaceChildren(...output.place.childNodes);
      return (this.#output = Object.assign(output, { place: this.#place }));
    }
    return (this.#output = new Output(this.#place, this.words));
  }

  // End with what there is to say of it, and whether it equals what is published, where that can be said.
  end(words, equal = "") {
    this.#output.finish();
    this.#status.textContent = words;
    this.element.dataset.equal = equal;
  }

  // Show what an examiner said before, when the page was last open.
  remember(verdict) {
    this.#status.textContent = "Checked before:";
    this.judge(verdict);
  }

  // Show what an examiner says of an exercise, and where to go on.
  judge({ right, words }, ...more) {
    this.element.querySelector(".live-verdict")?.remove();
    this.element.append(element("p", { className: "live-verdict", role: "status", data: { right } }, words, ...more));
  }
}
