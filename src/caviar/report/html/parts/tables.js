// Tables: a button in each heading sorts.
function keyOf(row, column) {
  const cell = row.cells[column];
  const key = cell.dataset.key === undefined ? cell.textContent : cell.dataset.key;
  if (key === "") return null;
  const number = Number(key);
  return Number.isNaN(number) ? key.toLowerCase() : number;
}

function compare(first, second) {
  if (first === null || second === null) return first === second ? 0 : first === null ? 1 : -1;
  if (typeof first === typeof second) return first < second ? -1 : first > second ? 1 : 0;
  return typeof first === "number" ? -1 : 1;
}

// What is not there stands at the end in either direction.
function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const keyed = Array.from(body.rows, (row) => ({ row, key: keyOf(row, column) }));
  keyed.sort((a, b) => (a.key === null || b.key === null ? 1 : direction) * compare(a.key, b.key));
  body.append(...keyed.map((entry) => entry.row));
  Array.from(table.tHead.rows[0].cells).forEach((heading, number) => {
    const sorted = direction > 0 ? "ascending" : "descending";
    heading.setAttribute("aria-sort", number === column ? sorted : "none");
  });
}

for (const table of document.querySelectorAll("table.sortable")) {
  Array.from(table.tHead.rows[0].cells).forEach((heading, column) => {
    const button = make("button", { type: "button" }, make("span", {}, heading.textContent));
    heading.textContent = "";
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const isAscending = heading.getAttribute("aria-sort") === "ascending";
      sortBy(table, column, isAscending ? -1 : 1);
    });
  });
}
