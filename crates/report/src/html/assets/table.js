// Functions of the view, sorted and filtered; as many rows as are readable.
kt.table = () => {
  const table = byId("flat"), body = table.tBodies[0], filter = byId("filter"), SHOWN = 200;
  const average = (row) => (row.ended ? row.elapsed / row.ended : NaN);
  const maybe = (write) => (n) => (Number.isNaN(n) ? "–" : write(n));
  const name = { id: "name", head: "function", key: (row) => kt.name(row.f), text: true };
  const one = [
    name,
    { id: "self", head: "self", key: (row) => row.net, show: kt.amount, title: "without callees" },
    { id: "share", head: "% self", key: (row) => row.net, show: (net) => kt.percent(net, kt.view.about.busy), bar: (row) => row.net },
    { id: "error", head: "±", key: (row) => kt.error(row.net), show: kt.amount, title: "standard error of the function's own time (√n samples)", sampled: true },
    { id: "calls", head: "calls", key: (row) => row.calls, show: kt.count, title: "calls that were made", calls: true },
    { id: "ended", head: "ended", key: (row) => (row.derived ? NaN : row.ended), show: maybe(kt.count), title: "calls that ended", calls: true },
    { id: "total", head: "in all", key: (row) => row.elapsed, show: kt.amount, title: "with callees" },
    { id: "average", head: "average", key: average, show: maybe(kt.amount), title: "with callees, per call that ended", calls: true },
    { id: "slowest", head: "slowest", key: (row) => (row.slowest < 0 ? NaN : row.slowest), show: maybe(kt.amount), title: "the one call with the most, with callees", calls: true },
  ];
  const two = [
    name,
    { id: "self", head: "self, first", key: (row) => row.net, show: kt.amount },
    { id: "self2", head: "second", key: (row) => row.net2, show: kt.amount },
    { id: "difference", head: "difference", key: (row) => row.net2 - row.net, show: (n) => kt.signed(n, kt.amount), verdict: true, size: true },
    { id: "change", head: "change", key: (row) => (row.net ? row.net2 / row.net : row.net2 ? Infinity : 1), show: (_, row) => kt.change(row.net, row.net2), verdict: true },
    { id: "calls", head: "calls, first", key: (row) => row.calls, show: kt.count, calls: true },
    { id: "calls2", head: "second", key: (row) => row.calls2, show: kt.count, calls: true },
    { id: "total", head: "in all, first", key: (row) => row.elapsed, show: kt.amount },
    { id: "total2", head: "second", key: (row) => row.elapsed2, show: kt.amount },
  ];
  const isPair = () => kt.state.profile === "diff" || kt.state.profile === "both";
  const columns = () => (isPair() ? two : one).filter((column) => (column.sampled ? kt.isSampled() : kt.hasCalls() || !column.calls));
  const rowsNow = () => {
    if (!isPair()) return [...kt.view.functions.values()];
    const [a, b] = kt.sides.map((side) => side.functions), rows = [];
    const none = { net: 0, calls: 0, elapsed: 0 };
    for (const f of new Set([...a.keys(), ...b.keys()])) {
      const x = a.get(f) || none, y = b.get(f) || none;
      rows.push({ f, net: x.net, net2: y.net, calls: x.calls, calls2: y.calls, elapsed: x.elapsed, elapsed2: y.elapsed });
    }
    return rows;
  };
  // Sort order: a column, and whether it is ascending.
  const order = (list) => {
    const [id, up] = kt.state.sort.split(".");
    const column = list.find((c) => c.id === id) || list.find((c) => c.id === (isPair() ? "difference" : "self"));
    return { column, up: column.id === id && kt.state.sort ? up === "up" : Boolean(column.text) };
  };
  const header = (list, by) => {
    table.tHead.replaceChildren(kt.make("tr", {}, ...list.map((column) => {
      const button = kt.make("button", { type: "button", title: column.title || "sort by this" }, column.head);
      button.dataset.column = column.id;
      const th = kt.make("th", { scope: "col", class: column === list[0] ? "first" : "" }, button);
      if (column === by.column) th.setAttribute("aria-sort", by.up ? "ascending" : "descending");
      return th;
    })));
  };
  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { column, up } = order(columns()), id = button.dataset.column;
    const ascending = column.id === id ? !up : id === "name";
    kt.set({ sort: id + "." + (ascending ? "up" : "down") });
    const again = table.tHead.querySelector(`[data-column="${id}"]`);
    if (again) again.focus();
  });
  const draw = () => {
    const list = columns(), by = order(list);
    header(list, by);
    const wanted = filter.value.trim().toLowerCase();
    const hit = (row) => !wanted || kt.name(row.f).toLowerCase().includes(wanted) || kt.file(row.f).toLowerCase().includes(wanted) || kt.module(row.f).toLowerCase().includes(wanted);
    const rows = rowsNow().filter(hit);
    // Unknown values come last in both orders.
    const key = by.column.size ? (row) => Math.abs(by.column.key(row)) : by.column.key;
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
      const least = typeof x === "string" ? x.localeCompare(y) : x === y ? 0 : x - y;
      return (by.up ? least : -least) || a.f - b.f;
    });
    const net = rows.reduce((sum, row) => sum + row.net, 0), shown = rows.slice(0, SHOWN);
    const rest = rows.length > SHOWN ? "; the first " + SHOWN + " are listed" : "";
    if (isPair()) {
      const second = rows.reduce((sum, row) => sum + row.net2, 0);
      byId("count").textContent = `${kt.grouped(rows.length)} functions, self ${kt.amount(net)} → ${kt.amount(second)}, ${kt.change(net, second)}${rest}`;
    } else byId("count").textContent = kt.grouped(rows.length) + (rows.length === 1 ? " function, " : " functions, ") + kt.percent(net, kt.view.about.busy) + " of busy " + kt.unit() + rest;
    const largest = Math.max(1, ...shown.map((row) => row.net));
    body.replaceChildren(...shown.map((row) => line(row, list, largest)));
  };
  const line = (row, list, largest) => {
    const swatch = kt.make("i");
    swatch.style.background = kt.color(row.f, "");
    const button = kt.make("button", { type: "button", title: kt.module(row.f) || kt.file(row.f) || "" }, swatch, kt.name(row.f));
    const cells = list.slice(1).map((column) => {
      const value = column.key(row), cell = kt.make("td", {}, column.show(value, row));
      if (column.verdict) cell.className = kt.verdict(row.net2 - row.net);
      if (column.bar) {
        cell.style.setProperty("--part", (100 * row.net / largest).toFixed(1) + "%");
        cell.className = "part";
      }
      return cell;
    });
    const tr = kt.make("tr", {}, kt.make("th", { scope: "row", class: "first" }, button), ...cells);
    tr.dataset.f = row.f;
    if (row.f === kt.state.fn) tr.className = "chosen";
    return tr;
  };
  body.addEventListener("click", (event) => {
    const tr = event.target.closest("tr");
    if (tr) kt.set({ fn: Number(tr.dataset.f) });
  });
  filter.addEventListener("input", kt.soon(draw));
  kt.on(["view"], kt.afterwards(draw));
  kt.on(["sort"], draw);
  kt.on(["fn"], () => {
    for (const tr of body.rows) tr.className = Number(tr.dataset.f) === kt.state.fn ? "chosen" : "";
  });
  draw();
};
