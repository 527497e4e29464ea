// Rows as points: predictions beside observations, or two hidden numbers.
const scatter = { number: 0 };

function rangeOf(values) {
  const low = Math.min(...values), high = Math.max(...values), margin = (high - low) * 0.04 || 1;
  return [low - margin, high + margin];
}

function drawScatter() {
  const own = figures.scatter[scatter.number];
  const across = own.points.map((point) => point[0]), up = own.points.map((point) => point[1]);
  if (!across.length) return;
  const ranges = { x: rangeOf(across), y: rangeOf(up) };
  const shown = own.points.length < own.of && !own.grouped ? `${own.points.length.toLocaleString("en")} of ${own.of.toLocaleString("en")} rows` : `all ${own.of.toLocaleString("en")} rows`;
  const names = { x: own.x, y: own.y || " ", hideY: !own.y };
  const { inside, x, y } = canvas(at("scatter-plot"), ranges, names, `${own.title}; ${shown}`, 0.6);
  if (own.diagonal) {
    const low = Math.max(ranges.x[0], ranges.y[0]), high = Math.min(ranges.x[1], ranges.y[1]);
    if (low < high) inside.append(draw("line", { class: "zero", x1: x(low), y1: y(low), x2: x(high), y2: y(high) }));
  }
  const d = own.points.map((point) => `M${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}h0`).join("");
  inside.append(draw("path", { class: "dots c0", d, "stroke-width": own.points.length > 500 ? 4 : 6 }));
  at("scatter").querySelector("figcaption").textContent = `${own.title}: ${shown}${own.diagonal ? "; on the line they are equal" : ""}`;
}

if (at("scatter")) {
  if (figures.scatter.length > 1) {
    at("scatter-controls").append(choice("Show", figures.scatter.map((own) => own.title), 0, (number) => {
      scatter.number = number;
      drawScatter();
    }).label);
  }
  redraws.push(drawScatter);
  drawScatter();
}
