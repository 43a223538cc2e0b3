// A block on the page that can be edited, run and, if it is an exercise, checked.
import { button } from "./access.js";
import { edit } from "./editor.js";
import { digest } from "./edits.js";
import { changed, next, scores, solved, stub } from "./exercises.js";
import { element } from "./output.js";
import { Result } from "./result.js";

export class Block {
  #editor;

  constructor(page, cell, shown, result) {
    Object.assign(this, { page, cell, shown, result, id: cell.live.block, original: digest(cell.source) });
    this.run = result.querySelector(".live-run");
    this.name = this.run?.ariaLabel.replace(/^Run /, "") ?? "block";
    this.exercise = stub(cell.source);
    this.scores = scores(cell.source);
  }

  get code() {
    return this.#editor?.value ?? this.cell.source;
  }

  get edited() {
    return this.code !== this.cell.source;
  }

  // Show the entry that is kept of it.
  follow(entry) {
    const code = entry?.code ?? this.cell.source;
    const mine = this.code;
    if (code === mine) return;
    if (this.#editor?.textarea === document.activeElement && document.hasFocus()) {
      const take = button("Take that", () => this.#editor.setOptions({ value: code }));
      this.#note.replaceChildren("Another tab has changed this block; what you write here takes its place. ", take);
      return;
    }
    const edited = this.edited;
    this.#kept = entry;
    this.#edit();
    this.#editor.setOptions({ value: code });
    if (edited) this.#offer(entry ? "As another tab has changed it. " : "Cleared. ", mine);
    else {this.#note.textContent = !entry
        ? ""
        : entry.original === this.original
        ? "Your edit, as you left it"
        : "The published code has changed since you edited it: Put back shows it";}
    if (entry?.verdict) this.begin().remember(entry.verdict);
  }

  // Keep what is written, without an examiner's verdict on other code.
  #changed() {
    this.#back.disabled = !this.edited;
    if (this.code === (this.#kept?.code ?? this.cell.source)) return;
    this.#kept = this.edited ? { code: this.code, original: this.original } : undefined;
    this.page.store(this.id, this.#kept);
    if (this.exercise) changed(this.exercise, this.id);
    this.#note.textContent = "";
  }

  // What the first click does: an editor in the place of the code, and run it.
  async open() {
    this.#edit();
    this.#editor.textarea.focus({ preventScroll: true });
    await this.#go(false);
  }

  #edit() {
    if (this.#editor) return;
    const place = element("div", { className: "live-editor" });
    this.shown.hidden = true;
    this.shown.after(place);
    this.#editor = edit(place, {
      name: `Code of ${this.name}. Control Enter runs it, Escape leaves.`,
      value: this.cell.source,
      changed: () => this.#back && this.#changed(),
      run: (on) => this.#go(on),
      leave: () => this.#run.focus(),
    });
    this.#tools(place);
  }

  #run;
  #back;
  #check;
  #note = element("span", { className: "live-note", role: "status" });
  #kept; // the entry of what is written

  #tools(place) {
    this.#run = button("Run", () => this.#go(false), { ariaLabel: `Run ${this.name}` });
    this.#back = button("Put back", () => this.#putBack(), {
      ariaLabel: `Put back the original of ${this.name}`,
      disabled: true,
    });
    this.#check = button("Check", () => this.check(), {
      ariaLabel: `Check ${this.exercise}`,
      className: "live-check",
    });
    const hint = element("span", { ariaHidden: "true" }, "Ctrl-Enter runs, Esc leaves");
    place.append(
      element(
        "p",
        { className: "live-tools" },
        this.#run,
        ...(this.exercise ? [this.#check] : []),
        this.#back,
        hint,
        " ",
        this.#note,
      ),
    );
    if (this.run) this.run.parentElement.hidden = true;
  }

  #putBack() {
    const mine = this.code;
    this.#editor.setOptions({ value: this.cell.source });
    this.#editor.textarea.focus();
    this.#offer("The original is back. ", mine);
    this.yours?.element.remove();
    this.yours = undefined;
  }

  // Say what has taken the place of what was written, and offer that again.
  #offer(words, mine) {
    this.#note.replaceChildren(words, button("Undo", () => this.#editor.setOptions({ value: mine })));
  }

  async #go(on) {
    if (on) {
      const blocks = this.page.blocks;
      const after = blocks[blocks.indexOf(this) + 1];
      after?.focus();
    }
    await this.page.enqueue(this.result, (goes) => this.page.runTo(this.cell, goes));
  }

  // Edit it, at a line and a column of the published code.
  focus(place) {
    for (let folded = this.shown.closest("details"); folded; folded = folded.parentElement.closest("details")) {
      folded.open = true;
    }
    this.#edit();
    this.page.warm();
    const { textarea, value } = this.#editor;
    textarea.focus({ preventScroll: Boolean(place) });
    if (!place) return;
    const lines = value.split("\n");
    const at = lines.slice(0, place.line).join("\n").length + (place.line && 1) + place.column;
    textarea.setSelectionRange(at, at);
  }

  // Have what is written judged, once at a time.
  async check() {
    this.focus();
    if (this.#check.disabled) return;
    this.#checking();
    let code = this.code;
    await this.page.enqueue(this.result, (goes) => this.#judge(code ?? this.code, goes));
    code = undefined; // if it was not judged, it waits for a server, and may be changed until there is one
    this.checked();
  }

  #checking() {
    this.#check.disabled = true;
    this.begin().checking("Checking …");
  }

  // No check is on its way any more.
  checked() {
    if (this.#check) this.#check.disabled = false;
    if (this.yours?.checked() !== false) return;
    this.yours.element.remove();
    this.yours = undefined;
  }

  async #judge(code, goes) {
    this.#checking();
    this.cell.judged = code;
    let verdict;
    try {
      verdict = await this.page.examine(this.cell, this.exercise, goes);
    } finally {
      this.cell.judged = undefined;
      this.checked();
    }
    if (!verdict) return;
    if (code !== this.code) return this.yours?.judge(verdict, " This is on what stood here when you pressed Check.");
    if (verdict.right) solved(this.exercise, this.id);
    if (this.#kept) this.page.store(this.id, this.#kept = { ...this.#kept, verdict });
    const others = this.page.blocks.map(({ exercise, cell }) => [exercise, cell.live.block]).filter(([name]) => name);
    this.yours?.judge(verdict, ...(verdict.right ? [" ", next(others, this.id)] : []));
  }

  // The place for the output of the block here.
  begin() {
    return (this.yours ??= new Result(this.result, this.name, this.cell.words));
  }
}
