// Elements made by name; every text is set as text, never read as markup.
const SVG = "http://www.w3.org/2000/svg";
const figures = JSON.parse(document.getElementById("figures").textContent);
const plot = figures.plot;
const hidden = new Set();
const redraws = [];

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  for (const child of children) element.append(child);
  return element;
}

function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function at(id) {
  return document.getElementById(id);
}

function colour(k) {
  return "c" + (k % 8);
}

function short(value) {
  if (value === null || value === undefined) return "missing";
  return Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4, useGrouping: "min2" }).replace("-", "−");
}

function redraw() {
  for (const own of redraws) own();
}

// A select with a label; `changed` gets the number of the choice.
function choice(label, options, chosen, changed) {
  const select = make("select");
  options.forEach((name, number) => {
    const option = make("option", { value: number }, name);
    option.selected = number === chosen;
    select.append(option);
  });
  select.addEventListener("change", () => changed(Number(select.value)));
  return { label: make("label", {}, label, select), select };
}

function tick(label, isTicked, changed) {
  const box = make("input", { type: "checkbox" });
  box.checked = isTicked;
  box.addEventListener("change", () => changed(box.checked));
  return make("label", { class: "inline" }, box, label);
}
