// The flat table: all functions of the view, sorted and filtered; as many rows as can be read.
kt.table = () => {
  const table = byId("flat"), body = table.tBodies[0], filter = byId("filter"), SHOWN = 400;
  const average = (row) => (row.ended ? row.elapsed / row.ended : 0);
  const all = [
    { head: "function", key: (row) => kt.name(row.f), text: true },
    { head: "net", key: (row) => row.net, show: kt.ns },
    { head: "% net", key: (row) => row.net, show: (net) => kt.percent(net, kt.view.about.busy), bar: true },
    { head: "±", key: (row) => kt.error(row.net), show: kt.ns, title: "standard error of the net time (√n samples)", sampled: true },
    { head: "calls", key: (row) => row.calls, show: kt.count, title: "calls that were made", calls: true },
    { head: "ended", key: (row) => row.ended, show: kt.count, title: "calls that ended", calls: true },
    { head: "elapsed", key: (row) => row.elapsed, show: kt.ns },
    { head: "average", key: average, show: kt.ns, title: "elapsed time per call that ended", calls: true },
    { head: "slowest", key: (row) => Math.max(0, row.slowest), show: kt.ns, title: "greatest elapsed time of one call", calls: true },
  ];
  const columns = all.filter((column) => (column.sampled ? kt.isSampled() : kt.hasCalls() || !column.calls));
  let by = 1, descending = true;
  const heads = columns.map((column, at) => {
    const button = kt.make("button", { type: "button", title: column.title || "sort" }, column.head);
    button.addEventListener("click", () => {
      descending = by === at ? !descending : !column.text;
      by = at;
      draw();
    });
    return kt.make("th", { scope: "col" }, button);
  });
  table.tHead.append(kt.make("tr", {}, ...heads));
  const draw = () => {
    heads.forEach((head, at) => {
      if (at === by) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const wanted = filter.value.trim().toLowerCase();
    const hit = (row) => !wanted || kt.name(row.f).toLowerCase().includes(wanted) || kt.file(row.f).toLowerCase().includes(wanted) || kt.module(row.f).toLowerCase().includes(wanted);
    const rows = [...kt.view.functions.values()].filter(hit);
    const key = columns[by].key;
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      const order = typeof x === "string" ? x.localeCompare(y) : x - y;
      return descending ? -order : order;
    });
    const net = rows.reduce((sum, row) => sum + row.net, 0);
    const shown = rows.slice(0, SHOWN);
    byId("count").textContent = kt.grouped(rows.length) + " functions, " + kt.percent(net, kt.view.about.busy) + " of busy time" + (rows.length > SHOWN ? "; the first " + SHOWN + " are listed" : "");
    const largest = Math.max(1, ...shown.map((row) => row.net));
    body.replaceChildren(...shown.map((row) => line(row, largest)));
  };
  const line = (row, largest) => {
    const swatch = kt.make("i");
    swatch.style.background = kt.colour(row.f, "");
    const name = kt.make("button", { type: "button", title: kt.module(row.f) || kt.file(row.f) || "" }, swatch, kt.name(row.f));
    const cells = columns.slice(1).map((column) => {
      const cell = kt.make("td", {}, column.show(column.key(row)));
      if (column.bar) cell.style.setProperty("--part", (100 * row.net / largest).toFixed(1) + "%");
      if (column.bar) cell.className = "part";
      return cell;
    });
    const tr = kt.make("tr", {}, kt.make("th", { scope: "row" }, name), ...cells);
    tr.dataset.f = row.f;
    if (row.f === kt.state.fn) tr.className = "chosen";
    return tr;
  };
  body.addEventListener("click", (event) => {
    const tr = event.target.closest("tr");
    if (tr) kt.set({ fn: Number(tr.dataset.f) });
  });
  filter.addEventListener("input", kt.soon(draw));
  kt.on(["region"], draw);
  kt.on(["fn"], () => {
    for (const tr of body.rows) tr.className = Number(tr.dataset.f) === kt.state.fn ? "chosen" : "";
  });
  draw();
};
