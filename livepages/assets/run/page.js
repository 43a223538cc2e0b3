// Runs the blocks of the page that is shown, in a kernel of its own on the reader's machine. The program is the page's
// notebook: the metadata `live` of a cell names its block on the page, and holds the output that was published.
import { button, cut, known, Off, panel } from "./access.js";
import { Block } from "./block.js";
import { Cell, summary } from "./cell.js";
import { followed, keep, matched } from "./edits.js";
import { cleared, ends, examination, examiner } from "./exercises.js";
import { Died, Kernel, Lost } from "./kernel.js";
import { element, Output, styled } from "./output.js";
import { list } from "./stored.js";

const root = new URL("../../../", import.meta.url);
const BRIDGE = '__import__("sys").modules["_live_kernel_bridge"].page';
const STOPS = 4000; // milliseconds in which what can be interrupted ends
const LONG = 3000; // milliseconds after which a reader is told how long an examination can take
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
      page.announce("This page and its program are not of the same version of the site. Reload the page to run it.");
    } else if (target.matches(".live-run")) await block.open();
    else if (target.matches(".live-check")) await block.check();
    else block.focus(place);
  } catch (error) {
    here = undefined; // the next click reads the page anew
    if (!page.announce(error.message)) throw error;
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
  #waiting = 0; // what is in the queue and has not begun
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
      this.announce(
        "This browser has no room for your edits, or may not keep them: they are lost when you leave the page.",
      );
    }
  }

  get blocks() {
    return this.cells.map((cell) => cell.block).filter(Boolean);
  }

  // Show a message in the bar; return whether there is one yet.
  announce(words) {
    if (!this.#bar) return false;
    this.#bar.hidden = false;
    this.#bar.querySelector("[role=status]").textContent = words;
    return true;
  }

  // --- what is run, one thing after the other ---

  // Do something with a kernel when all that is in the queue before it is done.
  //   at: the element that a panel stands after, if the reader has to start a server first.
  //   act: is called with a function that returns whether to go on.
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
        if (goes()) this.announce(error.message);
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
    this.announce("Starting a kernel …");
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
    this.announce(`${why}Start a server on your machine first.`);
    document.querySelector(".live-panel")?.remove();
    const place = panel(this.about.install, this.#onServer, async (kernel) => {
      this.#offer(true);
      this.announce("Starting a kernel …");
      try {
        if (await this.#prepare(kernel)) again();
      } catch (error) {
        this.announce(error.message);
      }
    });
    at.after(place);
    place.querySelector("button").focus({ preventScroll: true }); // which would hide where the panel begins
    place.scrollIntoView({ block: "nearest" });
    return false;
  }

  // Start a kernel where a server is known, as its reader has begun to write. It runs none of the page's code, and what
  // keeps it from starting is shown when something is to run.
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
    return (this.#begun ??= Kernel.start(access, this.#onServer));
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
    this.announce(`Connected to ${kernel.address}.`);
    return true;
  }

  // Show what happens to a server: it is slow, it answers again, or a kernel is lost (`lost`), and why.
  #onServer = (words, lost) => {
    if (lost) this.#forget();
    if (lost && !this.#begun?.taken) this.#begun = undefined;
    this.announce(words);
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
      this.announce(`Running what comes before: ${number + 1} of ${before.length} …`);
      if (!(await (typeof other === "string" ? this.#import(other) : this.#run(other, false)))) return false;
    }
    if (!goes()) return false;
    this.announce("Running …");
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
    const parts = await this.#call(`needed(${JSON.stringify(JSON.stringify([above.map(({ code }) => code), code]))})`);
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
    if (reply.status !== "ok") this.announce(`Stopped: ${code.split("\n")[0]} raised ${reply.ename}: ${reply.evalue}`);
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
    const output = result ? result.begin() : new Output(element("div"), cell.words);
    output.values = cell.edited;
    let reply, report;
    try {
      if (live.isolated) await this.#call("isolate()");
      if (live.start) {
        await this.#call(`at(${[cell.file, this.about.script].map((name) => JSON.stringify(name))}, ${live.start})`);
      }
      if (block?.exercise) await kernel.execute(cleared(block.exercise), { silent: true });
      reply = await kernel.execute(code, { each: (kind, content) => output.take(kind, content) });
      report = live.key && (await this.#report(cell, output));
      if (live.isolated) await this.#call("rejoin()");
      if (index === 0) await this.#call("prepared()");
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
      this.announce(reply.ename === "KeyboardInterrupt" ? "Stopped." : `Stopped: ${place} raised ${reply.ename}.`);
      result?.element.scrollIntoView({ block: "nearest" });
    } else if (shown) this.announce(reply.ename === "KeyboardInterrupt" ? "Stopped." : this.#state());
    return !failed;
  }

  #state() {
    return `Connected to ${this.#kernel.address}.`;
  }

  #editedBefore(cell) {
    return this.cells.some((other) => other.index < cell.index && other.edited);
  }

  #report(cell, output) {
    const { stdout, stderr, shown, figures } = output;
    const { live, source, published } = cell;
    const whole = !cell.edited && !this.#editedBefore(cell);
    const given = { cell: live, code: source, published, stdout, stderr, shown, figures, whole };
    return this.#call(`report(${JSON.stringify(JSON.stringify(given))})`);
  }

  // What follows the page in its kernel answers with JSON.
  async #call(expression) {
    const { user_expressions: values, ...reply } = await this.#kernel.execute("", {
      silent: true,
      expressions: { value: `${BRIDGE}.${expression}` },
    });
    if (values?.value.status === "ok") return JSON.parse(values.value.data["text/plain"].replace(/^None$/, "null"));
    throw new Lost(
      `The kernel did not report the result: ${
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
    this.announce(`Examining ${name} …`);
    const late = setTimeout(() => cell.block.yours?.checking(`Examining … (${ends}; Stop ends it now)`), LONG);
    let reply;
    try {
      reply = await this.#kernel.execute(examination(name), { each: (kind, content) => output.take(kind, content) });
    } catch (error) {
      if (!(error instanceof Died)) throw error; // an examiner ends the process of what it cannot interrupt
      this.#forget();
      this.announce(error.message);
      return { right: false, words: output.stdout.trim() || `${name}: its process ended while it was examined` };
    } finally {
      clearTimeout(late);
    }
    this.announce(this.#state());
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
        if (!goes()) return this.announce("Stopped.");
        if (cell.block?.run) number += 1;
        this.announce(number ? `Running block ${number} of ${shown} …` : "Running what comes before …");
        if (!(await this.#run(cell, true)) && !cell.live.isolated) {
          cell.block?.yours?.element.scrollIntoView({ block: "nearest" });
          return this.announce(`Stopped after ${number} of ${shown}: a block failed.`);
        }
      }
      const compared = cells.filter(({ report, edited }) => report.compared && !edited);
      const differing = compared.filter(({ report }) => report.difference);
      const skipped = cells.filter(({ report }) => report.skipped).length;
      this.whole = !cells.some(({ edited }) => edited);
      this.announce(
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
      const { name, zip } = await this.#call(`record(${JSON.stringify(JSON.stringify(given))})`);
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
    this.announce("Stopping …");
    interrupt();
    const again = setInterval(interrupt, AGAIN);
    const stopped = await Promise.race([ended, new Promise((late) => setTimeout(late, STOPS, false))]);
    clearInterval(again);
    if (turn !== this.#turn) return;
    const kept = this.#kernel
      ? "This has not stopped yet: compiled code cannot be interrupted, nor can a kernel that its code has broken. Restart ends the kernel and all that it holds."
      : "The server has not started a kernel yet. Restart no longer waits for it.";
    this.announce(stopped ? "Stopped." : kept);
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
    this.announce(`The kernel has ended; Run starts a new one.${dropped}`);
    await kernel?.end();
  }

  async disconnect() {
    cut();
    await this.restart();
    this.#offer(false);
    this.announce("Disconnected. The server on your machine runs until you end it.");
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
const resultOf = (anchor) => {
  for (let part = anchor.nextElementSibling; part && !part.matches(".live-anchor"); part = part.nextElementSibling) {
    if (part.matches(".live-result:not(.live-yours)")) return part;
  }
};
