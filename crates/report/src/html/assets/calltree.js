// Call tree as a table with rows that open, for keyboards and screen readers.
kt.callTree = () => {
  const table = byId("calltree"), body = table.tBodies[0], MOST = 3000;
  let tree = null, open = new Set(), rows = [], current = null;
  const c = () => kt.weight().column;
  const heads = () => {
    const w = kt.weight().title;
    return kt.isDiff() ? ["function", "first", "second", "difference", ""] : kt.state.mode === "up" ? ["function", w, "share"] : ["function", w + ", with callees", "share", "itself", "calls"];
  };
  const cells = (node) => {
    const all = tree.all[c()][node], whole = tree.totals[c()], bare = kt.weight().bare;
    const cell = (text, cls = "") => kt.make("td", { role: "gridcell", class: cls }, text);
    if (kt.isDiff()) {
      const b = tree.b[c()][node], a = all - b;
      return [cell(bare(a)), cell(bare(b)), cell(kt.signed(b - a, bare), kt.verdict(b - a)), cell(kt.change(a, b), kt.verdict(b - a))];
    }
    const part = cell(kt.percent(all, whole), "part");
    part.style.setProperty("--part", (100 * all / (whole || 1)).toFixed(1) + "%");
    if (kt.state.mode === "up") return [cell(bare(all)), part];
    return [cell(bare(all)), part, cell(bare(tree.own[c()][node])), cell(tree.f[node] === kt.SMALLER || !tree.calls[node] ? "" : kt.count(tree.calls[node]))];
  };
  const line = (node, depth, position, size) => {
    const way = kt.wayTo(tree, node), kids = kt.hasKids(tree, node), isOpen = open.has(way), f = tree.f[node];
    const swatch = kt.make("i");
    swatch.style.background = kt.color(f, kt.data.hows[tree.how[node]]);
    const twist = kt.make("span", { class: "twist", "aria-hidden": "true" }, kids ? (isOpen ? "▾" : "▸") : "");
    const wanted = kt.wanted(), name = kt.make("span", { class: wanted && wanted(f) ? "name found" : "name" }, kt.title(tree, node));
    const head = kt.make("th", { scope: "row", role: "rowheader" }, twist, swatch, name);
    head.style.paddingLeft = (0.4 + Math.min(depth, 60) * 0.85) + "rem";
    const tr = kt.make("tr", { role: "row", "aria-level": String(depth + 1), "aria-posinset": String(position), "aria-setsize": String(size), tabindex: "-1" }, head, ...cells(node));
    if (kids) tr.setAttribute("aria-expanded", String(isOpen));
    if (f >= 0 && f === kt.state.fn) tr.className = "chosen";
    rows.push({ tr, node, depth, way, kids });
    tr.dataset.row = String(rows.length - 1);
    return tr;
  };
  const draw = () => {
    if (kt.state.show !== "table" || !tree) return;
    const had = table.contains(document.activeElement);
    rows = [];
    const out = [];
    const walk = (node, depth) => {
      const order = kt.children(tree, node, c());
      order.forEach((kid, at) => {
        if (rows.length >= MOST || !(tree.all[c()][kid] > 0)) return;
        out.push(line(kid, depth, at + 1, order.length));
        if (open.has(kt.wayTo(tree, kid))) walk(kid, depth + 1);
      });
    };
    walk(-1, 0);
    table.tHead.replaceChildren(kt.make("tr", { role: "row" }, ...heads().map((head, at) => kt.make("th", { scope: "col", role: "columnheader", class: at ? "" : "first" }, head))));
    body.replaceChildren(...out);
    const at = Math.max(0, rows.findIndex((row) => row.way === current));
    if (rows[at]) { rows[at].tr.tabIndex = 0; if (had) rows[at].tr.focus(); }
  };
  const move = (to) => {
    const row = rows[to];
    if (!row) return;
    for (const { tr } of rows) tr.tabIndex = -1;
    row.tr.tabIndex = 0;
    row.tr.focus();
    current = row.way;
  };
  const toggle = (row, want) => {
    if (!row.kids || open.has(row.way) === want) return;
    if (want) open.add(row.way); else open.delete(row.way);
    current = row.way;
    draw();
  };
  body.addEventListener("click", (event) => {
    const tr = event.target.closest("tr");
    if (!tr) return;
    const row = rows[Number(tr.dataset.row)];
    current = row.way;
    if (event.target.closest(".twist") || event.detail === 2) toggle(row, !open.has(row.way));
    if (tree.f[row.node] >= 0) kt.set({ fn: tree.f[row.node] });
    tr.focus();
  });
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const tr = event.target.closest("tr"), at = Number(tr.dataset.row), row = rows[at];
    const up = () => { for (let i = at - 1; i >= 0; i--) if (rows[i].depth < row.depth) return i; return at; };
    // Opens the heaviest path as long as it dominates.
    const along = () => {
      let node = row.node;
      for (let i = 0; i < 40; i++) {
        open.add(kt.wayTo(tree, node));
        const first = kt.children(tree, node, c())[0];
        if (first === undefined || tree.f[first] === kt.SMALLER || tree.all[c()][first] * 2 < tree.all[c()][node]) break;
        node = first;
      }
      draw();
    };
    const act = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), Home: () => move(0), End: () => move(rows.length - 1),
      ArrowRight: () => (row.kids && !open.has(row.way) ? toggle(row, true) : move(at + 1)),
      ArrowLeft: () => (open.has(row.way) ? toggle(row, false) : move(up())),
      Enter: () => { if (tree.f[row.node] >= 0) kt.set({ fn: tree.f[row.node] }); },
      "*": along,
    }[event.key] || (() => kt.keyOn(event.key, tree.f[row.node]));
    if (event.key.length > 1 || "*fmxc".includes(event.key)) { event.preventDefault(); act(); }
  });
  const renew = () => {
    tree = kt.trees[0];
    // Opens the zoomed node, so that picture and table show the same place; otherwise the heaviest path.
    const node = kt.follow(tree, kt.state.zoom);
    for (const at of node < 0 ? [] : kt.pathTo(tree, node)) open.add(kt.wayTo(tree, at));
    if (open.size === 0) for (const root of kt.children(tree, -1, 0).slice(0, 1)) open.add(kt.wayTo(tree, root));
    draw();
  };
  kt.on(["trees", "zoom", "show"], renew);
  kt.on(["weight", "q"], draw);
  kt.on(["fn"], () => { for (const { tr, node } of rows) tr.className = tree.f[node] >= 0 && tree.f[node] === kt.state.fn ? "chosen" : ""; });
  renew();
};
