// The call tree as an icicle: callers above, width by weight.
kt.icicle = () => {
  const canvas = byId("icicle"), status = byId("icicle-status");
  const ROW = 19, NARROW = 0.6;
  let tree = null, rows = [], zoom = -1, hover = null, focus = -1, matches = () => false, searching = false;

  const column = () => kt.weight().column;
  const path = (node) => {
    const nodes = [];
    for (let at = node; at >= 0; at = tree.parent[at]) nodes.push(at);
    return nodes.reverse();
  };
  // Rectangles of everything that is wide enough; what is not is one box per parent.
  const layout = (width) => {
    const weight = tree.all[column()];
    rows = [];
    const put = (depth, rect) => (rows[depth] || (rows[depth] = [])).push(rect);
    const above = zoom < 0 ? [] : path(zoom);
    above.forEach((node, depth) => put(depth, { x: 0, w: width, node, above: node !== zoom, more: 0 }));
    const whole = zoom < 0 ? tree.totals[column()] : weight[zoom];
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
  const title = (node) => {
    const f = tree.f[node], how = kt.data.hows[tree.how[node]];
    if (f === kt.SMALLER) return kt.grouped(tree.calls[node]) + " smaller";
    // How it came to run is in the tooltip; only what nothing called is marked here.
    return (how === "interrupt" || how === "exception" ? how + " " : "") + kt.name(f);
  };
  const draw = () => {
    const began = performance.now();
    const width = canvas.clientWidth;
    layout(width);
    root.dataset.icicleLayoutMs = (performance.now() - began).toFixed(1);
    const { draw: g } = kt.fit(canvas, Math.max(4, rows.length) * ROW + 1);
    g.font = kt.FONT;
    const letter = kt.letter(), paper = kt.css("--paper"), mark = kt.css("--mark");
    const dark = kt.isDark();
    rows.forEach((row, depth) => {
      const y = depth * ROW;
      for (const rect of row) {
        const f = rect.node < 0 ? kt.SMALLER : tree.f[rect.node];
        const how = rect.node < 0 ? "call" : kt.data.hows[tree.how[rect.node]];
        const hit = searching && rect.node >= 0 && matches(f);
        g.globalAlpha = rect.above ? 0.55 : searching && !hit ? 0.4 : dark ? 0.86 : 1;
        g.fillStyle = hit ? mark : kt.colour(f, how);
        g.fillRect(rect.x, y, Math.max(0.5, rect.w - (rect.w > 3 ? 1 : 0)), ROW - 1);
        g.globalAlpha = 1;
        if (f >= 0 && f === kt.state.fn && rect.w > 2) {
          g.strokeStyle = kt.css("--ink");
          g.lineWidth = 2;
          g.strokeRect(rect.x + 1, y + 1, rect.w - 3, ROW - 3);
        }
        if (rect.w > 5 * letter) {
          const text = kt.cut(rect.node < 0 ? rect.more + " narrow" : title(rect.node), Math.floor((rect.w - 8) / letter));
          g.fillStyle = rect.above || searching && !hit ? kt.css("--ink") : hit ? "#14171b" : kt.ink(f);
          if (text) g.fillText(text, rect.x + 4, y + ROW / 2);
        }
      }
    });
    if (focus >= 0) {
      const rect = rows.flat().find((r) => r.node === focus);
      const depth = rows.findIndex((row) => row.includes(rect));
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
  const crumbs = () => {
    const place = byId("crumbs");
    const link = (text, node) => {
      const button = kt.make("button", { type: "button" }, text);
      button.addEventListener("click", () => into(node));
      return button;
    };
    const nodes = zoom < 0 ? [] : path(zoom);
    place.replaceChildren(link("all paths", -1), ...nodes.flatMap((node) => ["›", link(title(node), node)]));
  };
  const into = (node) => {
    if (node >= 0 && tree.f[node] === kt.SMALLER) return;
    zoom = node;
    focus = node;
    const words = zoom < 0 ? [] : path(zoom).map((at) => tree.f[at] + "." + tree.how[at]);
    kt.set({ zoom: words.join("_") });
    crumbs();
    describe(node);
    soon();
  };
  const facts = (node) => {
    const weight = kt.weight(), c = column();
    const whole = tree.totals[c];
    const lines = [];
    if (tree.f[node] !== kt.SMALLER) {
      if (tree.calls[node] > 0) lines.push(["calls", kt.grouped(tree.calls[node])]);
      lines.push(["with callees", weight.unit(tree.all[c][node]) + ", " + kt.percent(tree.all[c][node], whole)]);
      lines.push(["itself", weight.unit(tree.own[c][node]) + ", " + kt.percent(tree.own[c][node], whole)]);
      if (c !== 0) lines.push(["time", kt.ns(tree.all[0][node]) + ", itself " + kt.ns(tree.own[0][node])]);
      if (tree.parent[node] >= 0) lines.push(["of its caller", kt.percent(tree.all[c][node], tree.all[c][tree.parent[node]])]);
      if (tree.calls[node] > 0) lines.push(["per call made", weight.unit(tree.all[c][node] / tree.calls[node])]);
      const how = kt.data.hows[tree.how[node]];
      if (tree.f[node] >= 0) lines.push(["came to run by", how === "jump" ? "jump (tail call)" : how]);
      const source = kt.module(tree.f[node]) || kt.file(tree.f[node]);
      if (source) lines.push(["source", source]);
    } else {
      lines.push(["paths", kt.grouped(tree.calls[node]) + ", each too small to be told apart"]);
      lines.push(["together", weight.unit(tree.all[c][node]) + ", " + kt.percent(tree.all[c][node], whole)]);
    }
    return lines;
  };
  const describe = (node) => {
    status.textContent = node < 0 ? hint : title(node) + ": " + facts(node).map((line) => line.join(" ")).join("; ");
  };
  const hint = "Click zooms in, Backspace or the path above zooms out; a frame's function is chosen with it. Keys: arrows, Enter, C.";
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
    hover = find(event);
    canvas.style.cursor = hover && hover.node >= 0 ? "pointer" : "default";
    if (!hover) kt.untip();
    else if (hover.node < 0) kt.tip(event.clientX, event.clientY, hover.more + " narrow frames", [["together", kt.weight().unit(hover.rest)], ["", "zoom in to see them"]]);
    else kt.tip(event.clientX, event.clientY, title(hover.node), facts(hover.node));
  });
  canvas.addEventListener("mouseleave", kt.untip);
  canvas.addEventListener("click", (event) => {
    const rect = find(event);
    if (!rect) return;
    const node = rect.node < 0 ? rect.parent : rect.node;
    if (node < 0) return;
    if (kt.state.mode === "down" && tree.f[node] >= 0) kt.set({ fn: tree.f[node] });
    into(node === zoom ? tree.parent[node] : node);
  });
  canvas.addEventListener("keydown", (event) => {
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
    else if (event.key === "c" && at >= 0 && tree.f[at] >= 0) { kt.set({ fn: tree.f[at] }); return; }
    else return;
    event.preventDefault();
    if (to === undefined) return;
    focus = to;
    describe(focus);
    soon();
  });
  kt.highlight = (wanted) => {
    searching = wanted !== null;
    matches = wanted || (() => false);
    let sum = 0;
    if (searching) {
      // Time below a match counts once.
      const inside = new Uint8Array(tree.n);
      for (let at = 0; at < tree.n; at++) {
        const up = tree.parent[at];
        const under = up >= 0 && inside[up];
        const hit = tree.f[at] >= 0 && matches(tree.f[at]);
        if (hit && !under) sum += tree.all[column()][at];
        inside[at] = hit || under ? 1 : 0;
      }
      status.textContent = "Highlighted: " + kt.weight().unit(sum) + " with callees, " + kt.percent(sum, tree.totals[column()]) + ".";
    } else describe(zoom);
    soon();
  };
  const renew = () => {
    const groups = kt.view.about.groups, { mode, fn } = kt.state;
    tree = mode === "from" ? kt.treeFrom(groups, fn) : mode === "to" ? kt.treeTo(groups, fn) : kt.view.tree;
    zoom = focus = -1;
    // By name of the way, so that a link holds and another region shows the same place.
    for (const word of kt.state.zoom ? kt.state.zoom.split("_") : []) {
      const next = kt.children(tree, zoom, 0).find((at) => tree.f[at] + "." + tree.how[at] === word);
      if (next === undefined) break;
      zoom = next;
    }
    crumbs();
    describe(zoom);
    soon();
  };
  kt.on(["region", "mode", "fn"], (changed) => {
    if (changed.includes("region") || changed.includes("mode") || kt.state.mode !== "down") renew();
    else soon();
  });
  kt.on(["weight"], () => { describe(zoom); soon(); });
  kt.redraw(canvas, soon);
  renew();
  draw();
  kt.measure = () => { const began = performance.now(); draw(); return performance.now() - began; };
  kt.icicleZoom = into;
  kt.icicleTree = () => tree;
};
