// The output of a kernel, shown as text and pictures: never as markup, whatever it holds.

const LIMIT = 50_000; // characters of a block's output
const KEPT = 1_000_000; // characters of a stream that go back to the kernel to be compared; a server refuses long messages
const PICTURES = ["image/svg+xml", "image/png", "image/jpeg"];

export const element = (name, properties = {}, ...inside) => {
  const { data = {}, ...rest } = properties;
  const made = Object.assign(document.createElement(name), rest);
  Object.assign(made.dataset, data);
  made.append(...inside);
  return made;
};

// Load the styles of all that running and editing shows; resolves when they are here, or late.
export const styled = async () => {
  const style = element("link", { rel: "stylesheet", href: new URL("../run.css", import.meta.url) });
  if (document.head.querySelector(`link[href="${style.href}"]`)) return;
  const loaded = new Promise((done) => (style.onload = style.onerror = done));
  document.head.append(style);
  await Promise.race([loaded, new Promise((done) => setTimeout(done, 1000))]);
};

// Text as a terminal shows it: a line that is written again replaces the one before; colors are left out.
const plain = (text) =>
  text
    .replace(/\x1b\[[\d;?]*[A-Za-z]/g, "")
    .replace(/\r\n/g, "\n")
    .replace(/[^\n]*\r/g, "");

const code = (kind, ...text) =>
  element("div", { className: `highlight ${kind}` }, element("pre", {}, element("code", {}, ...text)));

// What keeps a region that grows at its end, unless its reader has scrolled up in it, and until they are back at the end.
const follower = (region) => {
  let follows = true;
  let top = 0;
  region.addEventListener("scroll", () => {
    if (region.scrollTop + region.clientHeight >= region.scrollHeight - 2) follows = true;
    else if (region.scrollTop < top) follows = false;
    top = region.scrollTop;
  });
  return () => follows && (region.scrollTop = region.scrollHeight);
};

export class Output {
  stdout = "";
  stderr = "";
  shown = ""; // what the last expression shows, as text, if it shows more than text
  figures = 0;
  error = "";
  values = true; // whether what a block's last line is worth is shown
  #last; // the element that the stream goes on in, its name, its text, and what scrolls to the end of that
  #size = 0;

  // In an element, which is emptied; figures are described by these words.
  constructor(place, words) {
    this.place = place;
    this.words = words;
    place.replaceChildren();
  }

  take(kind, content) {
    if (kind === "stream") this.#stream(content.name, content.text);
    else if (kind === "error") this.#error(content);
    else if (kind === "display_data" || kind === "execute_result") this.#display(kind, content.data);
  }

  // No keyboard reaches what scrolls unless it can have the focus.
  finish() {
    for (const region of this.place.querySelectorAll("pre > code")) {
      if (region.scrollHeight > region.clientHeight || region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    }
  }

  #stream(name, text) {
    this[name] += text.slice(0, KEPT - this[name].length);
    const room = LIMIT - this.#size;
    if (room <= 0) return;
    this.#size += text.length;
    if (this.#last?.name !== name) {
      const shown = code(`live-${name}`);
      this.place.append(shown);
      const place = shown.querySelector("code");
      this.#last = { name, text: "", place, follow: follower(place) };
    }
    this.#last.text += text.slice(0, room);
    const more = this.#size > LIMIT ? "\n[… the rest is left out]" : "";
    this.#last.place.textContent = plain(this.#last.text).trimEnd() + more;
    this.#last.follow();
  }

  #error({ ename, evalue, traceback }) {
    this.#last = undefined;
    this.error = `${ename}: ${evalue}`;
    const lead = element("strong", {}, ename);
    const whole = element("pre", {}, element("code", { tabIndex: 0 }, plain(traceback.join("\n"))));
    const folded = element("details", { className: "live-traceback" }, element("summary", {}, "Traceback"), whole);
    this.place.append(code("live-error", lead, evalue ? ": " : "", plain(evalue)), folded);
  }

  #display(kind, data) {
    this.#last = undefined;
    const text = [data["text/plain"] ?? ""].flat().join("");
    if (kind === "execute_result" && Object.keys(data).length > 1) this.shown += text.slice(0, KEPT);
    const type = PICTURES.find((type) => data[type]);
    if (type) {
      this.figures += kind === "display_data";
      const bytes = new TextEncoder().encode([data[type]].flat().join(""));
      const base64 = type === "image/svg+xml"
        ? btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
        : data[type];
      const picture = element("img", { alt: this.words || "What the code drew", src: `data:${type};base64,${base64}` });
      this.place.append(element("div", { className: "live-figure" }, picture));
    } else if (text && this.values) {
      this.place.append(code("live-stdout", plain(text).slice(0, LIMIT)));
    }
  }
}
