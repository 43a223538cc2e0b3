// The output of a block on the reader's machine, above what is published.
import { element, Output } from "./output.js";

export class Result {
  #status = element("p", { className: "live-note", role: "status" });
  #place = element("div");
  #output;
  #checks = ""; // what is said while an examiner is at work, in the place of what a run ends with
  #ending; // what a run ended with while one was

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
    this.#status.textContent = this.#checks || "Running …";
    if (output) {
      this.#place.replaceChildren(...output.place.childNodes);
      return (this.#output = Object.assign(output, { place: this.#place }));
    }
    return (this.#output = new Output(this.#place, this.words));
  }

  // End with what there is to say of it, and whether it equals what is published, where that can be said.
  end(words, equal = "") {
    this.#output.finish();
    this.#ending = words;
    this.#status.textContent = this.#checks || words;
    this.element.dataset.equal = equal;
  }

  // Say how far an examiner is, in the place of all that was said of other code, until `checked`.
  checking(words) {
    if (!this.#checks) {
      this.element.querySelector(".live-verdict")?.remove();
      this.#place.replaceChildren();
      this.#ending = undefined;
      this.element.dataset.equal = "";
    }
    this.#checks = this.#status.textContent = words;
  }

  // End that, with what the run ended with; whether anything is shown.
  checked() {
    if (!this.#checks) return true;
    this.#checks = "";
    this.#status.textContent = this.#ending ?? "";
    return this.#ending !== undefined;
  }

  // Show an examiner's earlier verdict, from when the page was last open.
  remember(verdict) {
    this.#status.textContent = "Checked before:";
    this.judge(verdict);
  }

  // Show an examiner's verdict on an exercise, and where to go on.
  judge({ right, words }, ...more) {
    this.element.querySelector(".live-verdict")?.remove();
    this.element.append(element("p", { className: "live-verdict", role: "status", data: { right } }, words, ...more));
  }
}
