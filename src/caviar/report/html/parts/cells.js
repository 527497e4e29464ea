// A table of numbers as coloured cells: one hue for each sign, the paler the closer to 0.
const cells = { number: 0 };

function drawCells() {
  const own = figures.cells[cells.number], place = at("cells-plot");
  const width = Math.max(240, place.clientWidth || 600);
  const longest = Math.max(...own.lines.map((name) => name.length), own.line.length);
  const left = Math.min(18 + 8 * longest, Math.round(width * 0.38));
  const side = Math.min(84, (width - left - 4) / own.columns.length);
  const height = Math.max(22, Math.min(34, side)), top = 42;
  const across = own.columns.length * side, down = own.lines.length * height;
  const largest = Math.max(...own.values.flat().map((value) => Math.abs(value || 0))) || 1;
  const told = `Means of ${own.name}: ${own.lines.length} lines by ${own.columns.length} columns, between ${short(-largest)} and ${short(largest)}`;
  const drawing = draw("svg", { viewBox: `0 0 ${width} ${top + down + 4}`, width, height: top + down + 4, role: "img", "aria-label": told });
  drawing.append(text(left + across / 2, 14, clipped(own.column, width / 8), "middle", "name"));
  drawing.append(text(left - 8, top - 8, clipped(own.line, left / 8), "end", "name"));
  const every = Math.ceil(24 / side);
  own.columns.forEach((name, n) => {
    if (n % every === 0) drawing.append(text(left + (n + 0.5) * side, top - 8, clipped(name, Math.max(1, (side * every) / 7.5)), "middle"));
  });
  own.values.forEach((line, i) => {
    drawing.append(text(left - 8, top + (i + 0.5) * height + 4, clipped(own.lines[i], (left - 10) / 7), "end", "entry"));
    line.forEach((value, j) => {
      if (value === null) return;
      const share = Math.abs(value) / largest;
      const box = { class: value < 0 ? "cell below" : "cell above", x: left + j * side, y: top + i * height, width: side - 1, height: height - 1 };
      const cell = draw("rect", { ...box, "fill-opacity": (0.04 + 0.66 * share).toFixed(3) });
      const words = own.weak[i][j] ? `(${rounded(value)})` : rounded(value);
      cell.append(draw("title", {}, `${own.line} ${own.lines[i]}, ${own.column} ${own.columns[j]}: ${words}`));
      drawing.append(cell);
      if (side >= 9 + 6.5 * words.length) drawing.append(text(box.x + side / 2, box.y + height / 2 + 4, words, "middle", "entry"));
    });
  });
  place.replaceChildren(drawing);
  const cut = own.cut.some((number) => number > 0) ? ` ${own.cut[0]} more lines and ${own.cut[1]} more columns are not shown.` : "";
  at("cells-readout").textContent = `${own.name}: blue above 0, orange below.${cut}`;
}

function rounded(value) {
  return Number(value.toPrecision(2)).toLocaleString("en", { maximumSignificantDigits: 2, useGrouping: "min2" }).replace("-", "−");
}

if (at("cells")) {
  if (figures.cells.length > 1) {
    at("cells-controls").append(choice("Variable", figures.cells.map((own) => own.name), 0, (number) => {
      cells.number = number;
      drawCells();
    }).label);
  }
  redraws.push(drawCells);
  drawCells();
}
