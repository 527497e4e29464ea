// The objective at each iteration; or, on a logarithmic scale, how far it still was from its end.
const trace = { isGap: false };

function drawTrace() {
  const end = figures.trace.length ? figures.trace[figures.trace.length - 1][1] : 0;
  const points = trace.isGap
    ? figures.trace.filter(([, value]) => end - value > 0).map(([n, value]) => [n, Math.log10(end - value)])
    : figures.trace;
  if (!points.length) return;
  const values = points.map(([, value]) => value);
  const margin = (Math.max(...values) - Math.min(...values)) * 0.06 || 1;
  const last = Math.max(points[points.length - 1][0], 1);
  const power = (value) => (Number.isInteger(value) ? "1e" + String(value).replace("-", "−") : "");
  const whole = (value) => Math.round(value).toLocaleString("en", { useGrouping: "min2" }).replace("-", "−");
  const wide = Math.max(...values) - Math.min(...values) > 20;
  const names = { x: "iteration", isCountX: true, y: trace.isGap ? "nats below the end" : `${figures.name}, nats` };
  names.tellY = trace.isGap ? power : wide ? whole : (value) => value.toFixed(2).replace("-", "−");
  const ranges = { x: [0, last], y: [Math.min(...values) - margin, Math.max(...values) + margin] };
  const words = `${figures.name} from ${short(figures.trace[0][1])} to ${short(end)} in ${last} iterations`;
  const { drawing, x, y } = canvas(at("trace-plot"), ranges, names, words, 0.36);
  drawing.append(draw("path", { class: "trace", d: "M" + points.map(([n, value]) => `${x(n).toFixed(1)} ${y(value).toFixed(1)}`).join("L") }));
  if (points.length <= 60) {
    for (const [n, value] of points) drawing.append(draw("circle", { class: "trace-dot", cx: x(n), cy: y(value), r: 3 }));
  }
}

at("trace-controls").append(tick("Distance to the end, on a logarithmic scale", false, (isGap) => {
  trace.isGap = isGap;
  drawTrace();
}));
redraws.push(drawTrace);
drawTrace();
