// The site for the JAX that its reader has: marks names that it lacks, and opens the recorded outputs that are nearest to
// it. live.js imports it when the reader has chosen one, or is about to. The choice stays in the browser; an address
// has it only where a reader copies one in order to share it (?jax=0.9.2).
import { element, imported, kept, meant, mine, read } from "./names.js";
import { lacks } from "./releases.js";

const LISTED = 6; // names in the note on a page

const FROM = { "": "NumPy and PyTorch", numpy: "NumPy", torch: "PyTorch" };

let styled;
const style = () => (styled ??= new Promise((loaded) => {
  const href = new URL("../stylesheets/version.css", import.meta.url);
  document.head.append(element("link", { rel: "stylesheet", href, onload: loaded, onerror: loaded }));
}));

const keep = (name, value) => {
  try {
    value ? localStorage.setItem(name, value) : localStorage.removeItem(name);
  } catch {
    // a browser that keeps nothing shows every page as it ran
  }
};

// --- a page --------------------------------------------------------------------------------------------------------

const undo = [];

// Shows the page for the reader's release; returns how many names it marked and outputs it opened.
export const show = async () => {
  const [data] = await Promise.all([read(), style()]);
  for (const each of undo.splice(0)) each();
  const release = mine(data);
  document.documentElement.dataset.liveFrom = kept("live-from") ?? "";
  for (const button of document.querySelectorAll(".live-version")) {
    button.textContent = release ? `JAX ${release}` : "Your JAX";
  }
  if (!release) return { names: 0, outputs: 0 };
  const lacking = marked(release, data);
  const { opened, other } = open(release, data);
  upgraded(release, data);
  const lines = ["Not yet in", "Not in", "No longer in"].flatMap((why) => {
    const those = [...lacking].filter(([, each]) => each === why).map(([name]) => name);
    return those.length ? element("p", {}, `${why} your JAX ${release}: `, ...listed(those), ".") : [];
  });
  if (opened) {
    const which = other === release ? "your release" : `jax ${other}, the recorded release nearest to yours`;
    const those = opened > 1
      ? `${opened} outputs differ with ${which}, and are open`
      : `1 output differs with ${which}, and is open`;
    lines.push(element("p", {}, `${those} below.`));
  }
  if (lines.length) {
    const note = element(
      "div",
      { className: "live-yours", role: "note", ariaLabel: `For your JAX ${release}` },
      ...lines,
    );
    (document.querySelector("article .live-masthead") ?? document.querySelector("article h1"))?.after(note);
    undo.push(() => note.remove());
  }
  return { names: lacking.size, outputs: opened };
};

const listed = (names) => {
  const shown = names.slice(0, LISTED).flatMap((name, at) => [at ? ", " : "", element("code", {}, name)]);
  return names.length > LISTED ? [...shown, ` and ${names.length - LISTED} more`] : shown;
};

// Marks the names on the page that a release lacks; returns them, each with the beginning of the sentence that says so.
const marked = (release, data) => {
  const found = new Map();
  const locals = imported();
  for (const place of document.querySelectorAll("article a.live-name, article :not(pre) > code:not(:has(a))")) {
    const names = meant(place, data, locals);
    const why = names.map((name) => lacks(data.names[name], release, data.releases));
    if (!why.length || why.includes("")) continue; // the release has what the reference describes, if not by each name
    found.set(names[0], why[0]);
    place.classList.add("live-lacking");
    const label = `${why[0]} your JAX ${release}`;
    const hidden = element("span", { className: "live-heard" }, ` (${label})`);
    if (place.href) place.setAttribute("aria-description", label);
    else place.after(hidden);
    undo.push(() => {
      place.classList.remove("live-lacking");
      place.removeAttribute("aria-description");
      hidden.remove();
    });
  }
  return found;
};

// Opens what was recorded with the release that is nearest to this one, where that is not the release of the page's own run.
const open = (release, { releases }) => {
  const far = (other) => Math.abs(releases.indexOf(other) - releases.indexOf(release));
  const named = (part) => part?.textContent.match(/jax (\d[\d.]*\d)/)?.[1];
  let [opened, other] = [0, ""];
  for (const row of document.querySelectorAll("article .live-elsewhere")) {
    const result = row.closest(".live-result");
    if ("liveVolatile" in result.dataset) continue; // where times are the point
    const own = named(result.querySelector(":scope > .live-small"));
    const parts = [...row.querySelectorAll("details")].filter((part) =>
      releases.includes(named(part.firstChild)) && part.querySelector("pre").textContent.trim()
    );
    const [part] = parts.toSorted((a, b) => far(named(a.firstChild)) - far(named(b.firstChild)));
    if (!part || !releases.includes(own) || far(named(part.firstChild)) >= far(own)) continue;
    other = named(part.firstChild);
    part.open = true;
    const label = element("span", {}, other === release ? ", your release" : `, the nearest to your ${release}`);
    part.firstChild.append(label);
    opened += 1;
    undo.push(() => {
      part.open = false;
      label.remove();
    });
  }
  return { opened, other };
};

// Chooses, where code of an old release is upgraded, the newest one on offer that is no newer than the reader's.
const upgraded = (release, { releases }) => {
  for (const group of document.querySelectorAll("article .live-controls fieldset:not(:has(.live-own))")) {
    const at = ({ textContent }) => releases.indexOf(textContent.replaceAll("'", ""));
    const offered = [...group.querySelectorAll("label")].toSorted((a, b) => at(a) - at(b));
    if (group.querySelector("legend").textContent !== "old" || at(offered[0]) < 0) continue;
    const before = group.querySelector("label:has(:checked)");
    const label = offered.findLast((each) => at(each) <= releases.indexOf(release)) ?? offered[0];
    const words = releases[at(label)] === release ? ", your release" : `, the nearest to your ${release}`;
    const mark = element("span", { className: "live-own" }, words);
    label.append(mark);
    label.firstChild.click();
    undo.push(() => {
      mark.remove();
      if (label.firstChild.checked) before.firstChild.click();
    });
  }
};

document.addEventListener("live-varied", async () => { // the controls may come after `show` has looked for them
  const data = await read();
  if (mine(data)) upgraded(mine(data), data);
});

// --- the dialog --------------------------------------------------------------------------------------------------

const count = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

const choice = (label, options, chosen, change) => {
  const field = element(
    "select",
    {},
    ...options.map(([value, text]) => new Option(text, value, false, value === chosen)),
  );
  field.addEventListener("change", () => change(field.value));
  return element("p", {}, element("label", {}, `${label} `, field));
};

// Lets the reader choose their JAX, and the library that they come from.
export const choose = async () => {
  const [data] = await Promise.all([read(), style()]);
  const status = element("output", {});
  const renew = async () => {
    const { names, outputs } = await show();
    const release = mine(data);
    status.value = release
      ? `On this page: ${count(names, "name")} marked, ${count(outputs, "output")} opened.`
      : "Pages are shown as they ran.";
    share.hidden = !release;
  };
  const change = (name) => (value) => {
    keep(name, value);
    const address = new URL(location.href);
    address.searchParams.delete("jax"); // which would win
    history.replaceState(history.state, "", address);
    return renew();
  };
  const share = element("button", { type: "button" }, "Copy a link to this page for it");
  share.addEventListener("click", async () => {
    const address = new URL(location.href);
    address.searchParams.set("jax", mine(data));
    await navigator.clipboard.writeText(address);
    status.value = "Copied.";
  });
  const releases = [["", "any release"], ...data.releases.toReversed().map((each) => [each, each])];
  const dialog = element(
    "dialog",
    { id: "live-ask-version", className: "md-typeset", ariaLabel: "Your JAX" },
    choice("Your release of JAX:", releases, mine(data), change("live-jax")),
    element("p", {}, "To find it, run ", element("code", {}, 'python -c "import jax; print(jax.__version__)"')),
    element(
      "p",
      {},
      "Every page then marks the names that your release lacks, and opens the outputs that were recorded with the release nearest to yours, where they differ. The choice stays in this browser.",
    ),
    choice("In tables, compare JAX with:", Object.entries(FROM), kept("live-from") ?? "", change("live-from")),
    element("p", {}, status),
    element("form", { method: "dialog" }, share, element("button", {}, "Done")),
  );
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close()); // beside it
  document.body.append(dialog);
  dialog.showModal();
  renew();
};
