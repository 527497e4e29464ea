// The components: a button for each shows or hides it in every plot.
const drawn = plot.ellipses.map((entry) => entry.k);

function shownEllipses() {
  return plot.ellipses.filter((entry) => !hidden.has(entry.k));
}

for (const k of drawn.length > 1 ? drawn : []) {
  const chip = make("button", { type: "button", class: "button " + colour(k), "aria-pressed": "true", "data-k": k });
  chip.append(make("span", { class: "mark " + colour(k) }), `Component ${k}`);
  chip.addEventListener("click", () => {
    if (!hidden.delete(k)) hidden.add(k);
    chip.setAttribute("aria-pressed", String(!hidden.has(k)));
    redraw();
  });
  at("chips").append(chip);
}

// Half-axes and direction of the ellipse that holds 95% of the rows of a Gaussian in two columns.
function ovalOf(entry, i, j) {
  const radius = Math.sqrt(-2 * Math.log(0.05));
  const a = entry.covariance[i][i], b = entry.covariance[i][j], c = entry.covariance[j][j];
  const points = [];
  // The Cholesky factor turns a circle into the ellipse.
  const l11 = Math.sqrt(Math.max(a, 0)), l21 = l11 > 0 ? b / l11 : 0, l22 = Math.sqrt(Math.max(c - l21 * l21, 0));
  for (let n = 0; n < 72; n += 1) {
    const angle = (n / 72) * 2 * Math.PI;
    const u = radius * Math.cos(angle), v = radius * Math.sin(angle);
    points.push([entry.mean[i] + l11 * u, entry.mean[j] + l21 * u + l22 * v]);
  }
  return points;
}

// The range of a column: of the ellipses, and of the rows that are drawn, or all of them but the farthest.
function rangesOf(leftOut) {
  return plot.columns.map((name, column) => {
    const values = plot.points ? plot.points.values.map((row) => row[column]).filter((value) => value !== null) : [];
    values.sort((a, b) => a - b);
    let low = Infinity, high = -Infinity;
    if (values.length) {
      low = values[Math.floor((values.length - 1) * leftOut)];
      high = values[Math.ceil((values.length - 1) * (1 - leftOut))];
    }
    for (const entry of leftOut > 0 && values.length ? [] : plot.ellipses) {
      const reach = 2.6 * Math.sqrt(Math.max(entry.covariance[column][column], 0));
      low = Math.min(low, entry.mean[column] - reach);
      high = Math.max(high, entry.mean[column] + reach);
    }
    const margin = (high - low) * 0.03 || 1;
    return [low - margin, high + margin];
  });
}

const columnRanges = rangesOf(0), closeRanges = rangesOf(0.01);
