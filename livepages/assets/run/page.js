// Runs the blocks of the page that is shown, in a kernel of its own on the reader's machine. The program is the page's
// notebook: the metadata `live` of a cell names its block on the page, and holds the output that was published.
import { button, cut, known, Off, panel } from "./access.js";
import { edit } from "./editor.js";
import { digest, followed, keep, matched } from "./edits.js";
import { changed, cleared, ends, examination, examiner, next, scores, solved, stub, tally } from "./exercises.js";
import { Died, Kernel, Lost } from "./kernel.js";
import { element, Output, styled } from "./output.js";
import { Result } from "./result.js";
import { list } from "./stored.js";

const root = new URL("../../../", import.meta.url);
const BRIDGE = '__import__("sys").modules["_live_kernel_bridge"].page';
const STOPS = 4000; // milliseconds in which what can be interrupted ends
const LONG = 3000; // milliseconds after which a reader hears how long an examination can take
const AGAIN = 1500; // milliseconds after which it is interrupted again: the first time it may not have begun yet

// A text of the site.
const text = async (address) => {
  const answer = await fetch(address).catch(() => null);
  if (!answer?.ok) throw new Off(`${new URL(address, location.href).pathname} could not be loaded.`);
  return answer.text();
};

let here; // the page that is shown, once something was run on it

// What a click on Run or Edit does, one into the code of a block, or one on "run it here" or "your edits".
export const clicked = async (target, event) => {
  here ??= new Page();
  const page = here;
  const at = target.closest(".live-result") ?? target;
  try {
    const place = target.matches("code") ? placeOf(target, event) : undefined;
    await page.ready;
    const block = page.blocks.find(({ result, shown }) => result === at || shown.contains(target));
    if (target.matches(".live-mine")) page.showStored();
    else if (target.matches(".live-here")) await page.runAll(at);
    else if (!block) {
      page.say("This page and its program are not of the same version of the site. Reload the page to run it.");
    } else if (target.matches(".live-run")) await block.open();
    else if (target.matches(".live-check")) await block.check();
    else block.focus(place);
  } catch (error) {
    here = undefined; // the next click reads the page anew
    if (!page.say(error.message)) throw error;
  }
};

// Show what a reader has written into the blocks of this page when they were here before.
export const restore = () => {
  here ??= new Page();
  here.ready.catch(() => (here = undefined)); // the next click tells why
};

followed(() => here?.ready.then(() => here.follow()));

// The line and column of the code that a click points at, both from 0.
const placeOf = (code, { clientX, clientY }) => {
  const position = document.caretPositionFromPoint?.(clientX, clientY);
  const found = position
    ? { startContainer: position.offsetNode, startOffset: position.offset }
    : document.caretRangeFromPoint?.(clientX, clientY);
  if (!found || !code.contains(found.startContainer)) return undefined;
  const before = document.createRange();
  before.setStart(code, 0);
  before.setEnd(found.startContainer, found.startOffset);
  const lines = before.toString().split("\n");
  return { line: lines.length - 1, column: lines.at(-1).length };
};

window.document$?.subscribe(() => {
  if (here && !here.article.isConnected) {
    here.leave();
    here = undefined;
  }
});
addEventListener("pagehide", () => here?.leave());

class Page {
  #kernel;
  #begun; // a promise of the next one; `taken` if something waits for it
  #ran = new Map(); // what the kernel has run: the code of cells, by their index
  #queue = Promise.resolve();
  #turn = 0; // counts what ends all that waits: Stop, Restart, Disconnect
  #waiting = 0; // what was asked for and has not begun
  #bar;

  constructor() {
    this.article = document.querySelector("article") ?? document.querySelector("[role=main], main") ?? document.body;
    this.ready = this.#read();
  }

  async #read() {
    const styles = styled();
    const link = document.querySelector("[data-live-notebook]").dataset.liveNotebook;
    const book = JSON.parse(await text(link));
    this.about = book.metadata.live;
    const cells = book.cells.filter((cell) => cell.cell_type === "code" && cell.metadata.live);
    this.cells = cells.map((cell, index) => new Cell(cell, index));
    for (const cell of this.cells) {
      const anchor = cell.live.block && document.getElementById(cell.live.block);
      const result = anchor?.matches(".live-anchor") && resultOf(anchor);
      if (result) cell.block = new Block(this, cell, anchor.nextElementSibling, result);
    }
    await styles;
    this.#showBar();
    this.follow();
  }

  // Bring blocks to what is kept of them, except for one that is being written: this tab knows better.
  follow() {
    const entries = matched(this.blocks.map(({ id, original }) => [id, original]));
    for (const block of this.blocks) block.follow(entries[block.id]);
  }

  store(block, entry) {
    try {
      keep(block, entry);
    } catch {
      this.say("This browser has no room for your edits, or may not keep them: they are lost when you leave the page.");
    }
  }

  get blocks() {
    return this.cells.map((cell) => cell.block).filter(Boolean);
  }

  // Say something in the bar; whether there is one yet.
  say(words) {
    if (!this.#bar) return false;
    this.#bar.hidden = false;
    this.#bar.querySelector("[role=status]").textContent = words;
    return true;
  }

  // --- what is run, one thing after the other ---

  // Do something with a kernel when all that was asked for before is done.
  //   at: the element that a panel stands after, if the reader has to start a server first.
  //   act: gets whether it goes on, to ask now and then.
  enqueue(at, act) {
    const turn = this.#turn;
    const goes = () => turn === this.#turn;
    this.#waiting += 1;
    this.#queue = this.#queue.then(async () => {
      if (!goes()) return;
      this.#waiting -= 1;
      try {
        if (await this.#connect(at, () => this.enqueue(at, act))) await act(goes);
      } catch (error) {
        if (!(error instanceof Off || error instanceof Lost)) console.error(error);
        if (goes()) this.say(error.message);
        if (goes() && error instanceof Lost && !this.#kernel?.lives) this.#forget();
      }
    });
    return this.#queue;
  }

  async #connect(at, again) {
    if (this.#kernel?.lives) return true;
    this.#forget();
    const turn = this.#turn;
    const access = await known();
    this.#offer(Boolean(access));
    this.say("Starting a kernel …");
    let why = "";
    if (access) {
      const begun = this.#begin(access);
      begun.taken = true;
      try {
        return await this.#prepare(await begun, turn);
      } catch (error) {
        if (!(error instanceof Lost) || document.querySelector("meta[name=live-kernels]")) throw error;
        why = `${error.message} `;
        cut();
        this.#offer(false);
      } finally {
        if (begun === this.#begun) this.#begun = undefined;
      }
    }
    this.say(`${why}Start a server on your machine first.`);
    document.querySelector(".live-panel")?.remove();
    const place = panel(this.about.install, this.#hears, async (kernel) => {
      this.#offer(true);
      this.say("Starting a kernel …");
      try {
        if (await this.#prepare(kernel)) again();
      } catch (error) {
        this.say(error.message);
      }
    });
    at.after(place);
    place.querySelector("button").focus({ preventScroll: true }); // which would hide where the panel begins
    place.scrollIntoView({ block: "nearest" });
    return false;
  }

  // Start a kernel where a server is known, as its reader has begun to write. It runs none of the page's code, and what
  // keeps it from starting is said when something is to run.
  async warm() {
    if (this.#begun || this.#kernel?.lives) return;
    const turn = this.#turn;
    try {
      const access = await known();
      if (access && turn === this.#turn && !this.#kernel?.lives) await this.#equip(await this.#begin(access));
    } catch {
      if (!this.#begun?.taken) this.#begun = undefined;
    }
  }

  #begin(access) {
    return (this.#begun ??= Kernel.start(access, this.#hears));
  }

  // Give a kernel what runs beside the page.
  #equip(kernel) {
    this.beside ??= text(new URL("live-kernel.py", root));
    return (kernel.equipped ??= this.beside.then((program) => kernel.execute(program, { silent: true })));
  }

  // End a kernel that nothing waits for.
  #drop() {
    if (!this.#begun?.taken) this.#begun?.then((kernel) => kernel.end(), () => {});
    this.#begun = undefined;
  }

  // Make a kernel that of the page, unless the page was stopped while it started.
  async #prepare(kernel, turn = this.#turn) {
    const reply = await this.#equip(kernel);
    if (reply.status !== "ok") {
      kernel.end();
      throw new Off(
        `The Python of this server cannot run the page (${reply.ename}: ${reply.evalue}). Start the server with the page's own command.`,
      );
    }
    if (turn !== this.#turn) {
      kernel.end();
      return false;
    }
    this.#kernel = kernel;
    this.say(`Connected to ${kernel.address}.`);
    return true;
  }

  // What is said of a server besides the answers: that it is slow, that it answers again, or why a kernel is lost.
  #hears = (words, lost) => {
    if (lost) this.#forget();
    if (lost && !this.#begun?.taken) this.#begun = undefined;
    this.say(words);
  };

  #forget() {
    this.#kernel = undefined;
    this.#ran.clear();
    delete this.whole;
  }

  // Run what a cell needs that has not run as it stands, then the cell itself; whether it came to that.
  async runTo(cell, goes, carried = false) {
    const needed = this.cells.filter(
      ({ index, live }) =>
        (index < cell.index && (live.prepares || !(live.isolated || cell.live.isolated))) || (carried && live.prepares),
    );
    const first = needed.findIndex((other) => !this.#stands(other));
    const rest = first < 0
      ? []
      : needed.slice(first).filter((other) => !(other.live.prepares || other.sets) || !this.#stands(other));
    const apart = Boolean(cell.block?.exercise || cell.block?.scores) && rest.some(({ live }) => !live.prepares);
    const before = apart ? await this.#before(cell, needed) : rest;
    for (const [number, other] of before.entries()) {
      if (!goes()) return false;
      this.say(`Running what comes before: ${number + 1} of ${before.length} …`);
      if (!(await (typeof other === "string" ? this.#import(other) : this.#run(other, false)))) return false;
    }
    if (!goes()) return false;
    this.say("Running …");
    cell.failed = !(await this.#run(cell, true));
    // What ran without all that comes before it runs again before what comes after it.
    if (apart) {
      for (const { index, live, sets } of [...before, cell]) if (!live?.prepares && !sets) this.#ran.delete(index);
    }
    return goes();
  }

  // Whether a cell has run as it stands.
  #stands({ code, index }) {
    return this.#ran.get(index) === code;
  }

  get exercises() {
    return this.blocks.map(({ exercise }) => exercise).filter(Boolean);
  }

  // What an exercise or a score needs that has not run, of the cells that a block of the page would need: cells, and import
  // statements of others.
  async #before(cell, cells) {
    const above = cells.filter(({ live }) => !live.prepares);
    const code = [cell.code, ...(cell.block.scores ? this.exercises : [])].join("\n");
    const parts = await this.#ask(`needed(${JSON.stringify(JSON.stringify([above.map(({ code }) => code), code]))})`);
    const found = parts.map(([at, code, sets]) => {
      above[at].sets = sets;
      return code === above[at].code ? above[at] : code;
    });
    return [...cells.filter(({ live }) => live.prepares), ...found].filter((other) =>
      typeof other === "string" || !this.#stands(other)
    );
  }

  async #import(code) {
    const reply = await this.#kernel.execute(code, { silent: true });
    if (reply.status !== "ok") this.say(`Stopped: ${code.split("\n")[0]} raised ${reply.ename}: ${reply.evalue}`);
    return reply.status === "ok";
  }

  // Run one cell; whether what comes after it can.
  async #run(cell, shown) {
    const { code, index, live, block } = cell;
    if (this.#ran.has(index) && this.#ran.get(index) !== code) {
      for (const other of [...this.#ran.keys()]) if (other > index) this.#ran.delete(other);
    }
    this.#ran.delete(index);
    const kernel = this.#kernel;
    let result = block && shown ? block.begin() : undefined;
    const output = result ? result.begin() : new Output(element("div"), cell.published.words);
    output.values = cell.edited;
    let reply, report;
    try {
      if (live.isolated) await this.#ask("alone()");
      if (live.start) {
        await this.#ask(`at(${[cell.file, this.about.script].map((name) => JSON.stringify(name))}, ${live.start})`);
      }
      if (block?.exercise) await kernel.execute(cleared(block.exercise), { silent: true });
      reply = await kernel.execute(code, { each: (kind, content) => output.take(kind, content) });
      report = live.key && (await this.#report(cell, output));
      if (live.isolated) await this.#ask("together()");
      if (index === 0) await this.#ask("prepared()");
    } catch (error) {
      result?.end(`Stopped: ${error.message}`);
      throw error;
    }
    // A page checks, unseen, what its code has made: that of a reader's own code it cannot know.
    const checks = !block && !live.prepares && reply.ename === "AssertionError" && this.#editedBefore(cell);
    const failed = reply.status !== "ok" && !report?.as_expected && !checks;
    if (!failed) this.#ran.set(index, code);
    if (block && (shown || failed)) {
      if (!shown) (result = block.begin()).begin(output);
      result.end(...summary(cell, report, this.#editedBefore(cell)));
    }
    cell.report = report;
    if (failed && !shown) {
      const place = block ? "a block above" : "the preparation of the page";
      this.say(reply.ename === "KeyboardInterrupt" ? "Stopped." : `Stopped: ${place} raised ${reply.ename}.`);
      result?.element.scrollIntoView({ block: "nearest" });
    } else if (shown) this.say(reply.ename === "KeyboardInterrupt" ? "Stopped." : this.#state());
    return !failed;
  }

  #state() {
    return `Connected to ${this.#kernel.address}.`;
  }

  #editedBefore(cell) {
    return this.cells.some((other) => other.index < cell.index && other.edited);
  }

  #report(cell, output) {
    const { stdout, stderr, figures } = output;
    const whole = !cell.edited && !this.#editedBefore(cell);
    const given = { cell: cell.live, code: cell.source, published: cell.published, stdout, stderr, figures, whole };
    return this.#ask(`report(${JSON.stringify(JSON.stringify(given))})`);
  }

  // What follows the page in its kernel answers with JSON.
  async #ask(what) {
    const { user_expressions: values, ...reply } = await this.#kernel.execute("", {
      silent: true,
      expressions: { value: `${BRIDGE}.${what}` },
    });
    if (values?.value.status === "ok") return JSON.parse(values.value.data["text/plain"].replace(/^None$/, "null"));
    throw new Lost(
      `The kernel cannot say what came of it: ${
        values?.value.evalue ?? reply.evalue ?? reply.status
      }. Restart ends it, and Run then starts a new one.`,
    );
  }

  async examine(cell, name, goes) {
    if (!(await this.runTo(cell, goes, true))) return "";
    if (cell.failed) return { right: false, words: `${name}: not examined, because its code raises an error` };
    const output = new Output(element("div"));
    // In steps of their own: what is interrupted before it runs, as long code may be, never ends.
    const carried = await this.#kernel.execute(examiner.carried, { silent: true });
    if (carried.status !== "ok" && goes()) await this.#kernel.execute(await text(examiner.address), { silent: true });
    if (!goes()) return "";
    this.say(`Examining ${name} …`);
    const late = setTimeout(() => cell.block.yours?.checking(`Examining … (${ends}; Stop ends it now)`), LONG);
    let reply;
    try {
      reply = await this.#kernel.execute(examination(name), { each: (kind, content) => output.take(kind, content) });
    } catch (error) {
      if (!(error instanceof Died)) throw error; // an examiner ends the process of what it cannot interrupt
      this.#forget();
      this.say(error.message);
      return { right: false, words: output.stdout.trim() || `${name}: its process ended while it was examined` };
    } finally {
      clearTimeout(late);
    }
    this.say(this.#state());
    if (reply.status === "ok") return { right: true, words: output.stdout.trim() };
    return { right: false, words: reply.ename === "KeyboardInterrupt" ? "Stopped." : reply.evalue || reply.ename };
  }

  async runAll(at) {
    if (this.#ran.size) await this.restart();
    return this.enqueue(at, async (goes) => {
      const cells = this.cells.filter(({ live }) => live.key);
      const shown = this.blocks.filter(({ run }) => run).length; // which alone have numbers
      let number = 0;
      for (const cell of this.cells) {
        if (!goes()) return this.say("Stopped.");
        if (cell.block?.run) number += 1;
        this.say(number ? `Running block ${number} of ${shown} …` : "Running what comes before …");
        if (!(await this.#run(cell, true)) && !cell.live.isolated) {
          cell.block?.yours?.element.scrollIntoView({ block: "nearest" });
          return this.say(`Stopped after ${number} of ${shown}: a block failed.`);
        }
      }
      const compared = cells.filter(({ report, edited }) => report.compared && !edited);
      const differing = compared.filter(({ report }) => report.difference);
      const skipped = cells.filter(({ report }) => report.skipped).length;
      this.whole = !cells.some(({ edited }) => edited);
      this.say(
        (compared.length
          ? `All ran: ${compared.length - differing.length} of ${compared.length} blocks gave what is published`
          : "All ran; the site itself has not run them yet") +
          (skipped ? `, ${skipped} cannot run here.` : ".") +
          (this.whole
            ? " The record of this host says it to others: unpack it in a copy of the repository, and send what it adds under records/ as a pull request."
            : ""),
      );
      this.#bar.querySelector(".live-record").hidden = !this.whole;
    });
  }

  async #download() {
    const keys = this.cells.map(({ live }) => live.key).filter(Boolean);
    const given = {
      page: this.about.page,
      files: this.about.files,
      keys,
      code: this.cells.map(({ source }) => source),
    };
    await this.enqueue(this.#bar, async () => {
      const { name, zip } = await this.#ask(`record(${JSON.stringify(JSON.stringify(given))})`);
      const bytes = Uint8Array.from(atob(zip), (character) => character.charCodeAt(0));
      const href = URL.createObjectURL(new Blob([bytes], { type: "application/zip" }));
      element("a", { href, download: `record-${name}.zip` }).click();
      URL.revokeObjectURL(href);
    });
  }

  // --- what ends it ---

  async stop() {
    const turn = (this.#turn += 1);
    const sent = [];
    // A server that is gone ends what runs, too.
    const interrupt = () => sent.push(this.#kernel?.interrupt().catch(() => {}));
    // One that is still on its way would end what runs next.
    const ended = this.#queue = this.#queue.then(async () => {
      clearInterval(again);
      await Promise.all(sent);
      return true;
    });
    this.#waiting = 0;
    this.say("Stopping …");
    interrupt();
    const again = setInterval(interrupt, AGAIN);
    const stopped = await Promise.race([ended, new Promise((late) => setTimeout(late, STOPS, false))]);
    clearInterval(again);
    if (turn !== this.#turn) return;
    const kept = this.#kernel
      ? "This has not stopped yet: compiled code cannot be interrupted, nor can a kernel that its code has broken. Restart ends the kernel and all that it holds."
      : "The server has not started a kernel yet. Restart no longer waits for it.";
    this.say(stopped ? "Stopped." : kept);
    if (!stopped) this.#bar.querySelector(".live-restart").focus();
  }

  async restart() {
    this.#turn += 1;
    this.#queue = Promise.resolve(); // whatever is under way finds that its turn is over
    const kernel = this.#kernel;
    this.#forget();
    this.#drop();
    for (const block of this.blocks) block.checked();
    const dropped = this.#waiting ? " What waited for it does not run." : "";
    this.#waiting = 0;
    this.say(`The kernel has ended; Run starts a new one.${dropped}`);
    await kernel?.end();
  }

  async disconnect() {
    cut();
    await this.restart();
    this.#offer(false);
    this.say("Disconnected. The server on your machine runs until you end it.");
  }

  leave() {
    this.#turn += 1;
    this.#drop();
    this.#kernel?.end(); // which settles what runs: the browser may keep this page, and go back to it
  }

  // --- the bar at the bottom of the window ---

  showStored() {
    document.querySelector(".live-panel")?.remove();
    const [top, focus] = [scrollY, document.activeElement];
    const close = () => {
      panel.remove();
      scrollTo({ top, behavior: "instant" });
      focus.focus({ preventScroll: true });
    };
    const place = element("div");
    const panel = element(
      "section",
      { className: "live-panel", ariaLabel: "Your edits" },
      place,
      element("p", {}, button("Close", close)),
    );
    list(place, () => this.follow());
    this.#bar.before(panel);
    panel.scrollIntoView({ block: "nearest" });
    panel.querySelector("button").focus();
  }

  // What ends a kernel is offered while there is a server; without one, the bar may go.
  #offer(connected) {
    this.#bar.dataset.connected = connected;
  }

  #showBar() {
    const record = button("Download this host's record", () => this.#download(), {
      className: "live-record",
      hidden: true,
    });
    this.#bar = element(
      "section",
      { className: "live-bar md-typeset", ariaLabel: "Run it here" },
      element("span", { role: "status" }),
      element(
        "span",
        {},
        button("Run all", () => this.runAll(this.#bar.previousElementSibling ?? this.#bar)),
        button("Stop", () => this.stop(), { className: "live-connected" }),
        button("Restart", () => this.restart(), { className: "live-restart live-connected" }),
        record,
        button("Disconnect", () => this.disconnect(), { className: "live-connected" }),
        button("Your edits", () => this.showStored()),
        button("Hide", () => (this.#bar.hidden = true), { className: "live-hide" }),
      ),
    );
    this.#offer(false);
    this.article.append(this.#bar);
  }
}

// The result of the block that an anchor stands before; what is between them are the notes on its code.
export const resultOf = (anchor) => {
  for (let part = anchor.nextElementSibling; part && !part.matches(".live-anchor"); part = part.nextElementSibling) {
    if (part.matches(".live-result:not(.live-yours)")) return part;
  }
};

class Cell {
  constructor({ source, metadata, outputs }, index) {
    this.index = index;
    this.live = metadata.live;
    this.source = [source].flat().join("");
    this.published = { stdout: "", stderr: "", error: "", figures: 0, words: "" };
    for (const output of outputs) {
      if (output.output_type === "stream") this.published[output.name] += [output.text].flat().join("");
      else if (output.output_type === "error") this.published.error = `${output.ename}: ${output.evalue}`;
      else {
        this.published.figures += 1;
        this.published.words ||= [output.data["text/plain"]].flat().join("");
      }
    }
  }

  get code() {
    return this.judged ?? this.block?.code ?? this.source;
  }

  judged; // the code that is judged, whatever its reader writes meanwhile

  // The name of its file in the kernel, which errors and warnings say: its lines are those that a reader sees.
  get file() {
    return `${this.block?.run ? this.block.name.replace(" ", "-") : `hidden-${this.index}`}.py`;
  }

  get edited() {
    return this.code !== this.source;
  }
}

class Block {
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
    return (this.yours ??= new Result(this.result, this.name, this.cell.published.words));
  }
}

// What to say of a block that has run, and whether it equals what is published.
const summary = (cell, report, edited) => {
  if (!report) return [""];
  const where = [report.device, report.release, time(report.seconds)].filter(Boolean).join(", ");
  const edits = edited ? " after your edits above" : "";
  const sentence = report.skipped
    ? ""
    : cell.block?.scores
    ? ` ${tally(cell.block.page.exercises)} in this browser.`
    : cell.edited
    ? " Edited."
    : !report.compared
    ? ""
    : report.difference
    ? ` Not what is published${edits}: ${report.difference.split("\n")[0].replace(/:$/, "")}.`
    : cell.live.volatile
    ? " It ended as published; what it says differs from run to run."
    : ` Equal to the published output${edits}.`;
  return [
    `Yours: ${where}.${sentence}`,
    report.compared && !cell.edited && !cell.block?.scores ? !report.difference : "",
  ];
};

const time = (seconds) => (seconds >= 0.1 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds * 1e3)} ms`);
