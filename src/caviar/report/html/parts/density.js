// The density of one column, divided among the components, over a histogram of the rows.
const density = { column: 0, share: 0.5 };
const slider = make("input", { type: "range", min: 0, max: 1000, value: 500 });

function line(x, y, values, low, high) {
  const last = values.length - 1;
  return values.map((value, n) => `${x(low + ((high - low) * n) / last).toFixed(1)} ${y(value).toFixed(1)}`).join("L");
}

function drawDensity() {
  const own = plot.densities[density.column];
  const top = 1.08 * Math.max(...own.total, ...(own.histogram || []));
  const names = { x: plot.columns[density.column], y: "density", hideY: true };
  const words = `Density of ${names.x} from ${short(own.low)} to ${short(own.high)}`;
  const picture = canvas(at("density-plot"), { x: [own.low, own.high], y: [0, top] }, names, words, 0.42);
  const { drawing, x, y, frame } = picture;
  (own.histogram || []).forEach((height, n, all) => {
    const width = (frame.right - frame.left) / all.length;
    const from = frame.left + n * width;
    drawing.append(draw("rect", { class: "bar", x: from + 0.5, y: y(height), width: Math.max(width - 1, 0.5), height: frame.bottom - y(height) }));
  });
  for (const k of drawn.filter((number) => !hidden.has(number))) {
    const d = line(x, y, own.parts[k], own.low, own.high);
    drawing.append(draw("path", { class: "area " + colour(k), d: `M${frame.left} ${frame.bottom}L${d}L${frame.right} ${frame.bottom}Z` }));
  }
  drawing.append(draw("path", { class: "curve", d: "M" + line(x, y, own.total, own.low, own.high) }));
  tellDensity(own, picture);
  drawing.addEventListener("pointermove", (event) => {
    const place = pointer(event, picture).x;
    density.share = Math.min(1, Math.max(0, (place - frame.left) / (frame.right - frame.left)));
    slider.value = Math.round(1000 * density.share);
    tellDensity(own, picture);
  });
}

function tellDensity(own, picture) {
  const { drawing, frame } = picture;
  const n = Math.round(density.share * (own.total.length - 1));
  const value = own.low + (density.share * (own.high - own.low));
  const place = frame.left + density.share * (frame.right - frame.left);
  const old = drawing.querySelector(".cursor");
  if (old) old.remove();
  drawing.append(draw("line", { class: "cursor", x1: place, x2: place, y1: frame.top, y2: frame.bottom }));
  const best = drawn.reduce((first, k) => (own.parts[k][n] > own.parts[first][n] ? k : first), drawn[0]);
  const share = own.total[n] > 0 ? own.parts[best][n] / own.total[n] : 0;
  const name = plot.columns[density.column];
  const outside = own.outside ? ` ${own.outside} of the rows drawn lie outside the picture.` : "";
  at("density-readout").textContent =
    `At ${name} ${short(value)}: density ${short(own.total[n])}; component ${best} with ${Math.round(100 * share)}%.${outside}`;
  slider.setAttribute("aria-valuetext", `${name} ${short(value)}`);
}

if (plot.columns.length > 1) {
  at("density-controls").append(choice("Column", plot.columns, 0, (column) => {
    density.column = column;
    drawDensity();
  }).label);
}
slider.addEventListener("input", () => {
  density.share = Number(slider.value) / 1000;
  drawDensity();
});
at("density-controls").append(make("label", {}, "Read the density at", slider));
redraws.push(drawDensity);
drawDensity();
