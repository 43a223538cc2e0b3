// Makes a control of each explorable: a slider for numbers, a group of choices for anything else. All that it switches
// between is in the page already.
let groups = 0;

const element = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};

// Make the controls of all explorables that have none yet.
export const vary = async () => {
  const places = document.querySelectorAll(".live-vary:not(.live-varied)");
  for (const place of places) place.classList.add("live-varied");
  const style = element("link", { rel: "stylesheet", href: new URL("vary.css", import.meta.url) });
  if (!document.head.querySelector(`link[href="${style.href}"]`)) {
    const styled = new Promise((done) => (style.onload = style.onerror = done));
    document.head.append(style);
    await styled;
  }
  for (const place of places) build(place);
};

const build = (place) => {
  const names = JSON.parse(place.dataset.liveVary);
  const values = [...place.children].map(unfolded);
  const chosen = names.map(() => 0);
  const show = () => {
    const at = names.reduce((sum, { values }, number) => sum * values.length + chosen[number], 0);
    for (const [number, value] of values.entries()) value.classList.toggle("live-chosen", number === at);
  };
  const controls = names.map((name, number) =>
    (name.order.length ? slider : choice)(name, (at) => {
      chosen[number] = at;
      show();
    })
  );
  show();
  place.replaceChildren(
    element("div", { className: "live-controls" }, ...controls),
    element("div", { className: "live-values", ariaLive: "polite" }, ...values),
  );
  place.dispatchEvent(new Event("live-varied", { bubbles: true })); // for what a site may want to choose
};

// What the page folds, without the fold.
const unfolded = (value) => {
  if (!value.matches("details")) return value;
  value.querySelector("summary").remove();
  return element("div", { className: "live-value" }, ...value.childNodes);
};

// Moves from the smallest number to the largest, and begins at the page's own.
const slider = ({ name, values, order }, choose) => {
  const id = `live-vary-${(groups += 1)}`;
  const input = element("input", { id, type: "range", min: 0, max: values.length - 1, value: order.indexOf(0) });
  const output = element("output", { ariaLive: "off" }); // the slider says it itself
  output.htmlFor.add(id);
  const announce = () => {
    output.textContent = input.ariaValueText = values[order[input.value]];
  };
  input.addEventListener("input", () => {
    announce();
    choose(order[input.value]);
  });
  announce();
  return element("div", { className: "live-slider" }, element("label", { htmlFor: id }, name), input, output);
};

const choice = ({ name, values }, choose) => {
  const group = `live-vary-${(groups += 1)}`;
  const labels = values.map((value, at) => {
    const input = element("input", { type: "radio", name: group, checked: at === 0 });
    input.addEventListener("change", () => choose(at));
    return element("label", {}, input, value);
  });
  return element("fieldset", {}, element("legend", {}, name), ...labels);
};
