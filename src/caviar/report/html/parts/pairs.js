// Pairs of columns: small pictures to choose from, and one large plot.
const MOST_THUMBS = 5;
let isClose = plot.columns.some((name, column) => widthOf(columnRanges, column) > 4 * widthOf(closeRanges, column));

function widthOf(ranges, column) {
  return ranges[column][1] - ranges[column][0];
}

const pair = { i: 0, j: Math.min(1, plot.columns.length - 1), found: null, marked: null };

// One path of round dots for each component.
function dots(target, i, j, x, y, size, every) {
  const paths = new Map();
  plot.points.values.forEach((row, n) => {
    const k = plot.points.labels[n];
    if (n % every || hidden.has(k) || row[i] === null || row[j] === null) return;
    paths.set(k, (paths.get(k) || "") + `M${x(row[i]).toFixed(1)} ${y(row[j]).toFixed(1)}h0`);
  });
  for (const [k, d] of paths) target.append(draw("path", { class: "dots " + colour(k), d, "stroke-width": size }));
}

function ovals(target, i, j, x, y) {
  for (const entry of shownEllipses()) {
    const d = ovalOf(entry, i, j).map(([u, v]) => `${x(u).toFixed(1)} ${y(v).toFixed(1)}`).join("L");
    target.append(draw("path", { class: "oval " + colour(entry.k), d: `M${d}Z` }));
  }
}

function numbers(target, i, j, x, y) {
  for (const entry of shownEllipses()) {
    const group = draw("g", { class: colour(entry.k), transform: `translate(${x(entry.mean[i])} ${y(entry.mean[j])})` });
    group.append(draw("circle", { class: "label-back", r: 10 }), draw("text", { class: "label" }, String(entry.k)));
    target.append(group);
  }
}

function rangeOf(column) {
  return isClose ? closeRanges[column] : columnRanges[column];
}

let pairPicture = null;

function drawPair() {
  const { i, j } = pair;
  const names = { x: plot.columns[i], y: plot.columns[j] };
  const words = `${names.y} against ${names.x}: ${shownEllipses().length} components` +
    (plot.points ? ` and ${plot.points.rows.length} rows` : "");
  pairPicture = canvas(at("pair-plot"), { x: rangeOf(i), y: rangeOf(j) }, names, words, 0.75);
  const { drawing, inside, x, y } = pairPicture;
  if (drawn.length > 6) drawing.classList.add("dense");
  const many = plot.points ? plot.points.rows.length : 0;
  if (plot.points) dots(inside, i, j, x, y, Math.max(3, Math.min(7, 130 / Math.sqrt(many))), 1);
  ovals(inside, i, j, x, y);
  numbers(inside, i, j, x, y);
  pair.marked = draw("circle", { class: "here", r: 9, visibility: "hidden" });
  inside.append(pair.marked);
  mark(pair.found);
}

// Put a ring around a row, and say what it is.
function mark(n) {
  pair.found = n;
  const readout = at("pair-readout");
  const row = n === null ? null : plot.points.values[n];
  const isSeen = row !== null && row[pair.i] !== null && row[pair.j] !== null;
  if (isSeen) {
    pair.marked.setAttribute("cx", pairPicture.x(row[pair.i]));
    pair.marked.setAttribute("cy", pairPicture.y(row[pair.j]));
  }
  pair.marked.setAttribute("visibility", isSeen ? "visible" : "hidden");
  if (row !== null) {
    const values = plot.columns.map((name, column) => `${name} ${short(row[column])}`).join(", ");
    readout.textContent = `Row ${plot.points.rows[n]}, component ${plot.points.labels[n]}: ${values}`;
  } else {
    readout.textContent = plot.points ? "Point at a row, or give its number above, to read it." : "";
  }
}

function nearest(place) {
  let best = null, least = 18 * 18;
  plot.points.values.forEach((row, n) => {
    if (hidden.has(plot.points.labels[n]) || row[pair.i] === null || row[pair.j] === null) return;
    const distance = (pairPicture.x(row[pair.i]) - place.x) ** 2 + (pairPicture.y(row[pair.j]) - place.y) ** 2;
    if (distance < least) [best, least] = [n, distance];
  });
  return best;
}

function drawThumbs() {
  const count = Math.min(MOST_THUMBS, plot.columns.length);
  if (count < 3) return;
  const place = at("thumbs");
  const focused = document.activeElement && document.activeElement.dataset.pair;
  place.parentElement.classList.add("with-thumbs");
  place.style.gridTemplateColumns = `repeat(${count}, minmax(0, 1fr))`;
  place.replaceChildren();
  for (let j = 0; j < count; j += 1) {
    for (let i = 0; i < count; i += 1) {
      const name = make("span", { class: "thumb-name" }, i === j ? clipped(plot.columns[i], 16) : "");
      place.append(i < j ? thumb(i, j) : name);
    }
  }
  if (focused) place.querySelector(`[data-pair="${focused}"]`).focus();
}

function thumb(i, j) {
  const isChosen = pair.i === i && pair.j === j;
  const label = `${plot.columns[j]} against ${plot.columns[i]}`;
  const button = make("button", {
    type: "button", class: "thumb", title: label, "aria-label": label, "aria-pressed": String(isChosen), "data-pair": `${i}-${j}`,
  });
  const picture = draw("svg", { viewBox: "0 0 100 100", "aria-hidden": "true" });
  const x = scale(...rangeOf(i), 4, 96), y = scale(...rangeOf(j), 96, 4);
  if (plot.points) dots(picture, i, j, x, y, 3.5, Math.ceil(plot.points.rows.length / 400));
  ovals(picture, i, j, x, y);
  button.append(picture);
  button.addEventListener("click", () => choosePair(i, j));
  return button;
}

let acrossChoice = null, upChoice = null;

function choosePair(i, j) {
  [pair.i, pair.j] = [i, j];
  acrossChoice.select.value = i;
  upChoice.select.value = j;
  drawPair();
  for (const button of at("thumbs").querySelectorAll(".thumb")) {
    button.setAttribute("aria-pressed", String(button.dataset.pair === `${i}-${j}`));
  }
}

if (plot.columns.length > 1) {
  acrossChoice = choice("Across", plot.columns, pair.i, (i) => choosePair(i, pair.j));
  upChoice = choice("Up", plot.columns, pair.j, (j) => choosePair(pair.i, j));
  at("pair-controls").append(acrossChoice.label, upChoice.label);
  if (plot.points) {
    at("pair-controls").append(tick("Leave out the farthest 2%", isClose, (isTicked) => {
      isClose = isTicked;
      drawThumbs();
      drawPair();
    }));
    const input = make("input", { type: "number", id: "find-row", min: 0, max: plot.points.of - 1, inputmode: "numeric" });
    input.addEventListener("input", () => {
      const n = input.value ? plot.points.rows.indexOf(Number(input.value)) : -1;
      mark(n < 0 ? null : n);
      if (n < 0 && input.value) at("pair-readout").textContent = `Row ${input.value} is not drawn.`;
    });
    at("pair-controls").append(make("label", {}, "Row", input));
    at("pair-plot").addEventListener("pointermove", (event) => mark(nearest(pointer(event, pairPicture))));
  }
  redraws.push(drawPair, drawThumbs);
  drawThumbs();
  drawPair();
}
