// Call tree as an icicle graph: callers above, width by weight. `index` selects the tree.
kt.icicle = (canvas, index) => {
  const status = byId("icicle-status");
  const ROW = 19, NARROW = 0.6;
  let tree = null, rows = [], zoom = -1, focus = -1;

  const column = () => kt.weight().column;
  // Rectangles of all nodes that are wide enough; the others are one box per parent.
  const layout = (width) => {
    const weight = tree.all[column()];
    rows = [];
    const put = (depth, rect) => (rows[depth] || (rows[depth] = [])).push(rect);
    const above = zoom < 0 ? [] : kt.pathTo(tree, zoom);
    above.forEach((node, depth) => put(depth, { x: 0, w: width, node, above: node !== zoom, more: 0 }));
    const whole = zoom < 0 ? scaleOf() : weight[zoom];
    if (!(whole > 0)) return;
    const scale = width / whole;
    let level = [{ node: zoom, x: 0 }];
    for (let depth = above.length; level.length > 0; depth++) {
      const next = [];
      for (const { node, x } of level) {
        let at = x;
        const order = kt.children(tree, node, column());
        for (let i = 0; i < order.length; i++) {
          const w = weight[order[i]] * scale;
          if (w < NARROW) {
            let rest = 0;
            for (let k = i; k < order.length; k++) rest += weight[order[k]];
            if (rest * scale > 0.1) put(depth, { x: at, w: rest * scale, node: -1, parent: node, rest, more: order.length - i });
            break;
          }
          put(depth, { x: at, w, node: order[i], above: false, more: 0 });
          if (tree.f[order[i]] !== kt.SMALLER) next.push({ node: order[i], x: at });
          at += w;
        }
      }
      level = next;
    }
  };
  // Side by side, equal widths stand for equal weights.
  const scaleOf = () => Math.max(...kt.trees.map((other) => other.totals[column()] || 0));
  const fill = (rect, f, how) => {
    if (!kt.isDiff() || rect.node < 0 || rect.above) return kt.color(f, how);
    const all = tree.all[column()][rect.node], b = tree.b[column()][rect.node];
    return kt.changeColor((2 * b - all) / (all || 1));
  };
  const draw = () => {
    if (canvas.hidden || !tree || kt.state.show !== "flame") return;
    const began = performance.now();
    const width = canvas.clientWidth;
    layout(width);
    const { draw: g } = kt.fit(canvas, Math.max(4, rows.length) * ROW + 1);
    g.font = kt.FONT;
    const letter = kt.letter(), paper = kt.css("--paper"), mark = kt.css("--mark"), ink = kt.css("--ink");
    const dark = kt.isDark(), wanted = kt.wanted();
    rows.forEach((row, depth) => {
      const y = depth * ROW;
      for (const rect of row) {
        const f = rect.node < 0 ? kt.SMALLER : tree.f[rect.node];
        const how = rect.node < 0 ? "call" : kt.data.hows[tree.how[rect.node]];
        const hit = wanted && rect.node >= 0 && wanted(f);
        g.globalAlpha = rect.above ? 0.55 : wanted && !hit ? 0.4 : dark ? 0.86 : 1;
        g.fillStyle = hit ? mark : fill(rect, f, how);
        g.fillRect(rect.x, y, Math.max(0.5, rect.w - (rect.w > 3 ? 1 : 0)), ROW - 1);
        g.globalAlpha = 1;
        if (f >= 0 && f === kt.state.fn && rect.w > 2) {
          g.strokeStyle = ink;
          g.lineWidth = 2;
          g.strokeRect(rect.x + 1, y + 1, rect.w - 3, ROW - 3);
        }
        if (rect.w > 5 * letter) {
          const text = kt.cut(rect.node < 0 ? rect.more + " narrow" : kt.title(tree, rect.node), Math.floor((rect.w - 8) / letter));
          g.fillStyle = rect.above || wanted && !hit ? ink : hit || kt.isDiff() ? "#14171b" : kt.ink(f);
          if (text) g.fillText(text, rect.x + 4, y + ROW / 2);
        }
      }
    });
    if (focus >= 0 && document.activeElement === canvas) {
      const depth = rows.findIndex((row) => row.some((r) => r.node === focus));
      const rect = depth < 0 ? null : rows[depth].find((r) => r.node === focus);
      if (rect) {
        g.strokeStyle = paper;
        g.lineWidth = 4;
        g.strokeRect(rect.x + 1.5, depth * ROW + 1.5, Math.max(2, rect.w - 4), ROW - 4);
        g.strokeStyle = kt.css("--focus");
        g.lineWidth = 2;
        g.strokeRect(rect.x + 1, depth * ROW + 1, Math.max(2, rect.w - 3), ROW - 3);
      }
    }
    root.dataset.icicleMs = (performance.now() - began).toFixed(1);
    root.dataset.icicleRects = String(rows.reduce((sum, row) => sum + row.length, 0));
  };
  const soon = kt.soon(draw);
  const into = (node, more = {}) => {
    if (node >= 0 && tree.f[node] === kt.SMALLER) return;
    focus = node;
    kt.set({ zoom: kt.wayTo(tree, node), ...more });
    soon();
  };
  const describe = (node) => { status.textContent = node < 0 || node >= tree.n ? HINT : kt.inWords(tree, node); };
  const HINT = "Click: zoom in; Backspace or the path above: zoom out. Keys: arrows, Enter, C choose, F focus, M merge, X drop.";
  const find = (event) => {
    const box = canvas.getBoundingClientRect();
    const x = event.clientX - box.left, row = rows[Math.floor((event.clientY - box.top) / ROW)] || [];
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (row[middle].x + row[middle].w <= x) low = middle + 1; else high = middle;
    }
    const rect = row[low];
    return rect && rect.x <= x ? rect : null;
  };
  canvas.addEventListener("mousemove", (event) => {
    const hover = find(event);
    canvas.style.cursor = hover && hover.node >= 0 ? "pointer" : "default";
    if (!hover) kt.untip();
    else if (hover.node < 0) kt.tip(event.clientX, event.clientY, hover.more + " narrow frames", [["together", kt.weight().unit(hover.rest)], ["", "zoom in to see them"]]);
    else kt.tip(event.clientX, event.clientY, kt.title(tree, hover.node), kt.facts(tree, hover.node));
  });
  canvas.addEventListener("mouseleave", kt.untip);
  canvas.addEventListener("click", (event) => {
    const rect = find(event);
    if (!rect) return;
    const node = rect.node < 0 ? rect.parent : rect.node;
    if (node < 0) return;
    const choice = ["down", "up"].includes(kt.state.mode) && tree.f[node] >= 0 ? { fn: tree.f[node] } : {};
    into(node === zoom ? tree.parent[node] : node, choice);
  });
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = (node) => kt.children(tree, node, column())[0];
    const beside = (step) => {
      const order = kt.children(tree, focus < 0 ? -1 : tree.parent[focus], column());
      return order[order.indexOf(focus) + step];
    };
    const at = focus < 0 ? zoom : focus;
    let to;
    if (event.key === "ArrowDown") to = first(at);
    else if (event.key === "ArrowUp") to = at < 0 ? undefined : tree.parent[at];
    else if (event.key === "ArrowRight") to = beside(1);
    else if (event.key === "ArrowLeft") to = beside(-1);
    else if (event.key === "Enter") { event.preventDefault(); if (at >= 0) into(at); return; }
    else if (event.key === "Backspace" || event.key === "Escape") { event.preventDefault(); if (zoom >= 0) into(tree.parent[zoom]); return; }
    else { if (at >= 0) kt.keyOn(event.key, tree.f[at]); return; }
    event.preventDefault();
    if (to === undefined) return;
    focus = to;
    describe(focus);
    soon();
  });
  const follow = () => { zoom = kt.follow(tree, kt.state.zoom); if (focus >= tree.n) focus = -1; describe(focus >= 0 ? focus : zoom); soon(); };
  const renew = () => {
    tree = kt.trees[index] || null;
    const figure = canvas.closest("figure");
    figure.hidden = !tree;
    if (!tree) return;
    focus = -1;
    follow();
  };
  kt.on(["trees"], renew);
  kt.on(["zoom"], () => { if (tree) follow(); });
  kt.on(["weight", "fn", "q", "show"], soon);
  canvas.addEventListener("focus", soon);
  canvas.addEventListener("blur", soon);
  kt.redraw(canvas, soon);
  renew();
  draw();
  kt.measure = () => { const began = performance.now(); draw(); return performance.now() - began; };
  if (index === 0) {
    kt.icicleZoom = into;
    kt.frameAt = (x, y) => { const box = canvas.getBoundingClientRect(); const rect = find({ clientX: box.left + x, clientY: box.top + y }); return rect && rect.node >= 0 ? kt.title(tree, rect.node) : null; };
  }
};
// Path to the zoomed node.
kt.crumbs = () => {
  const place = byId("crumbs");
  const draw = () => {
    const tree = kt.trees[0];
    const zoom = kt.follow(tree, kt.state.zoom);
    const link = (text, node) => {
      const button = kt.make("button", { type: "button" }, text);
      button.addEventListener("click", () => kt.set({ zoom: kt.wayTo(tree, node) }));
      return button;
    };
    const nodes = zoom < 0 ? [] : kt.pathTo(tree, zoom);
    const all = { down: "all paths", up: "all functions, upside down" }[kt.state.mode] || kt.name(kt.state.fn);
    place.replaceChildren(link(all, -1), ...nodes.flatMap((node) => ["›", link(kt.title(tree, node), node)]));
  };
  kt.on(["trees", "zoom"], draw);
  draw();
};
