// Means and intervals of entries, one below the other: of variables, and of the words of topics.
const LINE = 22;

// A row for each entry: its name, and a bar or a dot with the interval; the axis below.
function drawIntervals(place, entry, description) {
  const width = Math.max(240, place.clientWidth || 600);
  const values = [...entry.mean, ...entry.low, ...entry.high].filter((value) => value !== null);
  const isAcross = Math.min(...values) < 0 && Math.max(...values) > 0;
  let low = Math.min(...values), high = Math.max(...values);
  if (entry.bars) [low, high] = [0, high || 1];
  const margin = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
  const longest = Math.max(...entry.labels.map((label) => label.length));
  const left = Math.min(14 + 7 * longest, Math.round(width * 0.42));
  const top = 4, bottom = top + LINE * entry.labels.length;
  const x = scale(entry.bars ? 0 : low - margin, high + margin, left, width - 12);
  const drawing = draw("svg", { viewBox: `0 0 ${width} ${bottom + 24}`, width, height: bottom + 24, role: "img", "aria-label": description });
  for (const value of steps(x.low, x.high, (width - left) / 90)) {
    drawing.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom }));
    drawing.append(text(x(value), bottom + 16, short(value), "middle"));
  }
  if (isAcross) drawing.append(draw("line", { class: "zero", x1: x(0), x2: x(0), y1: top, y2: bottom }));
  entry.labels.forEach((label, n) => {
    const y = top + LINE * (n + 0.5), mean = entry.mean[n], from = entry.low[n], to = entry.high[n];
    const name = text(left - 8, y + 4, clipped(label, (left - 10) / 7), "end", "entry");
    name.append(draw("title", {}, label));
    drawing.append(name);
    if (mean === null) return;
    if (entry.bars) drawing.append(draw("rect", { class: "share", x: x(0), y: y - 8, width: Math.max(0, x(mean) - x(0)), height: 16 }));
    if (from !== null && to !== null) drawing.append(draw("line", { class: "span", x1: x(from), x2: x(to), y1: y, y2: y }));
    const isHollow = from === null || (isAcross && from <= 0 && to >= 0);
    if (!entry.bars) drawing.append(draw("circle", { class: isHollow ? "dot hollow" : "dot", cx: x(mean), cy: y, r: 4.5 }));
  });
  drawing.append(draw("line", { class: "axis", x1: left, x2: width - 12, y1: bottom, y2: bottom }));
  place.replaceChildren(drawing);
}

if (at("intervals")) {
  const shown = { number: 0 };
  const drawVariable = () => {
    const entry = figures.intervals[shown.number];
    drawIntervals(at("intervals-plot"), entry, `Means and intervals of ${entry.labels.length} entries of ${entry.name}`);
    const less = entry.left_out ? `, the largest in size; ${entry.left_out.toLocaleString("en")} more are not shown` : "";
    at("intervals-readout").textContent = `${entry.labels.length} entries of ${entry.name}${less}`;
  };
  if (figures.intervals.length > 1) {
    at("intervals-controls").append(choice("Variable", figures.intervals.map((entry) => entry.name), 0, (number) => {
      shown.number = number;
      drawVariable();
    }).label);
  }
  redraws.push(drawVariable);
  drawVariable();
}

if (at("topics")) {
  const shown = { words: "words" };
  const drawTopics = () => {
    for (const topic of figures.topics) {
      const words = topic[shown.words];
      const entry = { bars: true, labels: words.map((word) => word[0]) };
      ["mean", "low", "high"].forEach((name, n) => { entry[name] = words.map((word) => word[n + 1]); });
      const place = document.querySelector(`[data-topic="${topic.k}"]`);
      drawIntervals(place, entry, `Words of topic ${topic.k}: ${entry.labels.join(", ")}`);
    }
  };
  at("topics-controls").append(choice("Words of each topic", ["the most probable", "what sets it apart"], 0, (number) => {
    shown.words = ["words", "apart"][number];
    drawTopics();
  }).label);
  at("topics").classList.add("drawn");
  redraws.push(drawTopics);
  drawTopics();
}
