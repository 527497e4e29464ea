// Hidden states along time: what was observed, the most probable path as a strip, and the probability of each state.
const chain = figures.chain;
const moment = { step: 0, from: 0, length: chain ? chain.steps : 0 };
const stepSlider = make("input", { type: "range", min: 0, max: 1000, value: 0 });

function pathAt(step) {
  let state = chain.runs[0][1];
  for (const [begin, own] of chain.runs) if (begin <= step) state = own;
  return state;
}

function drawChain() {
  const place = at("chain-plot"), width = Math.max(260, place.clientWidth || 600);
  const left = 52, right = width - 12, first = moment.from, last = moment.from + moment.length;
  const panel = chain.lines.length ? 150 : 0, strip = panel + 14, rows = strip + 40, each = 26;
  const bottom = rows + each * chain.states.length;
  const x = scale(first, last, left, right);
  const told = `${chain.runs.length} stays in ${chain.states.length} states over ${chain.steps} steps`;
  const drawing = draw("svg", { viewBox: `0 0 ${width} ${bottom + 40}`, width, height: bottom + 40, role: "img", "aria-label": told });
  for (const value of steps(first, last, width / 90)) {
    drawing.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: 6, y2: bottom }));
    drawing.append(text(x(value), bottom + 16, short(value), "middle"));
  }
  if (panel) drawObserved(drawing, x, 6, panel, first, last);
  chain.runs.forEach(([begin, state], n) => {
    const end = n + 1 < chain.runs.length ? chain.runs[n + 1][0] : chain.steps;
    const from = Math.max(begin, first), to = Math.min(end, last);
    if (to <= from) return;
    drawing.append(draw("rect", { class: "stay " + colour(state), x: x(from), y: strip, width: Math.max(0.5, x(to) - x(from)), height: 28 }));
    if (x(to) - x(from) > 16) {
      drawing.append(draw("circle", { class: "label-back " + colour(state), cx: x((from + to) / 2), cy: strip + 14, r: 9 }));
      drawing.append(draw("text", { class: "label", x: x((from + to) / 2), y: strip + 14 }, String(state)));
    }
  });
  drawing.append(text(left - 6, strip + 18, "path", "end"));
  chain.states.forEach((state, n) => {
    const base = rows + each * (n + 1) - 3;
    drawing.append(draw("path", { class: "area " + colour(state), d: stairs(chain.probabilities[state], x, base, each - 6, first, last) }));
    drawing.append(draw("line", { class: "axis", x1: left, x2: right, y1: base, y2: base }));
    drawing.append(text(left - 6, base - 4, `state ${state}`, "end"));
  });
  drawing.append(text((left + right) / 2, bottom + 34, "step", "middle", "name"));
  place.replaceChildren(drawing);
  const frame = { top: 6, bottom };
  const tell = () => tellStep(drawing, x, frame);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    moment.step = Math.min(last - 1, Math.max(first, Math.floor(x.back(((event.clientX - box.left) * width) / box.width))));
    tell();
  });
  moment.step = Math.min(last - 1, Math.max(first, moment.step));
  tell();
}

// The observed columns as lines, together in one scale; categories by their names.
function drawObserved(drawing, x, top, bottom, first, last) {
  if (chain.lines[0].levels) {
    drawCategories(drawing, x, top, bottom, first, last);
    return;
  }
  const values = chain.lines.flatMap((line) => line.values.slice(first, last)).filter((value) => value !== null);
  const low = Math.min(...values), high = Math.max(...values);
  const y = scale(low, high, bottom - 4, top + 4);
  for (const value of steps(low, high, 3)) drawing.append(text(46, y(value) + 4, short(value), "end"));
  chain.lines.forEach((line, n) => {
    let d = "", isBroken = true;
    for (let step = first; step < last; step += 1) {
      const value = line.values[step];
      if (value !== null) d += `${isBroken ? "M" : "L"}${x(step + 0.5).toFixed(1)} ${y(value).toFixed(1)}`;
      isBroken = value === null;
    }
    drawing.append(draw("path", { class: "observed line" + n, d }));
  });
}

function drawCategories(drawing, x, top, bottom, first, last) {
  const { levels, values } = chain.lines[0];
  const y = (level) => top + ((level + 0.5) * (bottom - top)) / levels.length;
  const every = Math.ceil(levels.length / 10);
  levels.forEach((name, level) => {
    if (level % every === 0) drawing.append(text(46, y(level) + 4, clipped(name, 8), "end"));
  });
  let d = "";
  for (let step = first; step < last; step += 1) {
    if (values[step] !== null) d += `M${x(step + 0.5).toFixed(1)} ${(y(values[step]) - 4).toFixed(1)}v8`;
  }
  drawing.append(draw("path", { class: "observed line0", d }));
}

function observedAt(line, step) {
  const value = line.values[step];
  return line.levels && value !== null ? line.levels[value] : short(value);
}

function stairs(shares, x, base, height, first, last) {
  let d = `M${x(first).toFixed(1)} ${base}`;
  for (let step = first; step < last; step += 1) {
    const top = (base - height * shares[step]).toFixed(1);
    d += `L${x(step).toFixed(1)} ${top}L${x(step + 1).toFixed(1)} ${top}`;
  }
  return d + `L${x(last).toFixed(1)} ${base}Z`;
}

function tellStep(drawing, x, frame) {
  const old = drawing.querySelector(".cursor"), place = x(moment.step + 0.5);
  if (old) old.remove();
  drawing.append(draw("line", { class: "cursor", x1: place, x2: place, y1: frame.top, y2: frame.bottom }));
  const state = pathAt(moment.step), shares = chain.probabilities[state];
  const sure = shares ? `, with ${Math.round(100 * shares[moment.step])}%` : "";
  const seen = chain.lines.map((line) => `${line.name} ${observedAt(line, moment.step)}`).join(", ");
  at("chain-readout").textContent = `Step ${moment.step}: state ${state}${sure}${seen ? "; " + seen : ""}`;
  stepSlider.value = Math.round((1000 * (moment.step - moment.from)) / Math.max(1, moment.length - 1));
  stepSlider.setAttribute("aria-valuetext", `step ${moment.step}, state ${state}`);
}

if (chain) {
  const widths = [chain.steps, 1000, 300, 100].filter((length, n) => n === 0 || length < chain.steps);
  if (widths.length > 1) {
    const names = widths.map((length, n) => (n === 0 ? "all steps" : `${length} steps`));
    at("chain-controls").append(choice("Show", names, 0, (number) => {
      moment.length = widths[number];
      moment.from = Math.max(0, Math.min(moment.step - Math.floor(moment.length / 2), chain.steps - moment.length));
      drawChain();
    }).label);
  }
  stepSlider.addEventListener("input", () => {
    moment.step = moment.from + Math.round((Number(stepSlider.value) / 1000) * (moment.length - 1));
    drawChain();
  });
  at("chain-controls").append(make("label", {}, "Read the step at", stepSlider));
  redraws.push(drawChain);
  drawChain();
}
