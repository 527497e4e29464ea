// Controls above a table that filter it: by what stands in a row, and by the least value of one column.
for (const controls of document.querySelectorAll("[data-filters]")) {
  const rows = Array.from(at(controls.dataset.filters).tBodies[0].rows);
  const search = controls.querySelector('input[type="search"]'), least = controls.querySelector('input[type="number"]');
  const choice = controls.querySelector("select"), told = controls.querySelector("output");
  const filter = () => {
    const wanted = search.value.trim().toLowerCase(), typeset = wanted.replaceAll("-", "−");
    let shown = 0;
    for (const row of rows) {
      const fits = (!least || Number(row.cells[least.dataset.column].dataset.key) >= Number(least.value || 0) / 100)
        && (!choice || !choice.value || row.cells[0].textContent === choice.value)
        && (row.textContent.toLowerCase().includes(wanted) || row.textContent.toLowerCase().includes(typeset));
      row.hidden = !fits;
      shown += fits ? 1 : 0;
    }
    told.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${controls.dataset.word} shown`;
  };
  controls.hidden = false;
  controls.addEventListener("input", filter);
  filter();
}
