// Axes: round steps, lines and names.
function steps(low, high, most) {
  const rough = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let n = Math.ceil(low / step); n * step <= high + step * 1e-9; n += 1) found.push(n * step);
  return found;
}

function scale(low, high, from, to) {
  const width = high - low || 1;
  const place = (value) => from + ((value - low) / width) * (to - from);
  place.back = (pixel) => low + ((pixel - from) / (to - from)) * width;
  place.low = low;
  place.high = high;
  return place;
}

// An empty plot as wide as its place. Gives the drawing, both scales, and the frame that they fill.
function canvas(place, ranges, names, description, share = 0.62) {
  const width = Math.max(260, place.clientWidth || 600);
  const height = Math.round(Math.min(Math.max(width * share, 220), 470));
  const frame = { left: 62, right: width - 12, top: 10, bottom: height - 46 };
  const y = scale(ranges.y[0], ranges.y[1], frame.bottom, frame.top);
  const marks = names.hideY ? [] : steps(y.low, y.high, height / 60).map((value) => [value, (names.tellY || short)(value)]);
  frame.left = 34 + 7 * Math.max(2, ...marks.map(([, words]) => words.length));
  const x = scale(ranges.x[0], ranges.x[1], frame.left, frame.right);
  const drawing = draw("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": description });
  const isMarked = (value) => !names.isCountX || Math.abs(value - Math.round(value)) < 1e-9;
  for (const value of steps(x.low, x.high, width / 90).filter(isMarked)) {
    drawing.append(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: frame.top, y2: frame.bottom }));
    drawing.append(text(x(value), frame.bottom + 17, short(value) , "middle"));
  }
  for (const [value, words] of marks) {
    drawing.append(draw("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(value), y2: y(value) }));
    drawing.append(text(frame.left - 7, y(value) + 4, words, "end"));
  }
  drawing.append(draw("path", { class: "axis", d: `M${frame.left} ${frame.top}V${frame.bottom}H${frame.right}` }));
  drawing.append(text((frame.left + frame.right) / 2, height - 8, clipped(names.x, width / 8), "middle", "name"));
  const middle = (frame.top + frame.bottom) / 2;
  const beside = text(0, 0, clipped(names.y, height / 8), "middle", "name");
  beside.setAttribute("transform", `translate(13 ${middle}) rotate(-90)`);
  drawing.append(beside);
  place.replaceChildren(drawing);
  return { drawing, inside: clippedTo(frame, drawing, place.id), x, y, frame, width, height };
}

// A group of which only what lies in the frame is seen.
function clippedTo(frame, drawing, name) {
  const size = { x: frame.left, y: frame.top, width: frame.right - frame.left, height: frame.bottom - frame.top };
  drawing.append(draw("clipPath", { id: name + "-frame" }, draw("rect", size)));
  const inside = draw("g", { "clip-path": `url(#${name}-frame)` });
  drawing.append(inside);
  return inside;
}

function text(x, y, words, anchor, kind = "") {
  return draw("text", { x, y, "text-anchor": anchor, class: kind || null }, words);
}

function clipped(name, most) {
  const length = Math.max(6, Math.floor(most));
  return name.length > length ? name.slice(0, length - 1) + "…" : name;
}

// Where on the drawing the pointer is, in its own units.
function pointer(event, picture) {
  const box = picture.drawing.getBoundingClientRect();
  const factor = picture.width / box.width;
  return { x: (event.clientX - box.left) * factor, y: (event.clientY - box.top) * factor };
}

let lastWidth = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  const width = document.documentElement.clientWidth;
  if (width !== lastWidth) {
    lastWidth = width;
    redraw();
  }
});
