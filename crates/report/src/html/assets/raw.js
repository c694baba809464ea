// Raw trees of call paths: columns of numbers, parents before children, with subtree sums.
kt.raw = (columns) => {
  if (columns.raw) return columns.raw;
  const n = columns.f.length, up = new Int32Array(n), open = [];
  for (let at = 0; at < n; at++) {
    open.length = columns.d[at];
    up[at] = open.length ? open[open.length - 1] : -1;
    open.push(at);
  }
  columns.raw = kt.indexed({ n, f: Int32Array.from(columns.f), how: Uint8Array.from(columns.h), calls: Float64Array.from(columns.c), own: columns.w.map((w) => Float64Array.from(w)), up });
  return columns.raw;
};
// Adds sums, and the first child and next sibling of each node; parents precede children.
kt.indexed = (tree) => {
  const { n, up } = tree;
  const first = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1);
  tree.roots = [];
  for (let at = n - 1; at >= 0; at--) {
    if (up[at] < 0) tree.roots.push(at);
    else { next[at] = first[up[at]]; first[up[at]] = at; }
  }
  tree.roots.reverse();
  tree.sums = tree.own.map((own) => {
    const sums = Float64Array.from(own);
    for (let at = n - 1; at >= 0; at--) if (up[at] >= 0) sums[up[at]] += sums[at];
    return sums;
  });
  return Object.assign(tree, { first, next });
};
// Removes dropped functions, gives merged ones to their callers, and keeps only the tree below the focus.
kt.apply = (raw, ops) => ops.reduce((tree, [what, f]) => {
  const { n, up } = tree;
  const into = new Int32Array(n), of = new Int32Array(n), above = new Int32Array(n);
  let count = 0;
  for (let at = 0; at < n; at++) {
    const parent = up[at] < 0 ? -1 : into[up[at]], hit = tree.f[at] === f, root = up[at] < 0;
    let keep = true, gone = false;
    if (what === "drop") gone = hit || (!root && parent === -2);
    else if (what === "focus") gone = !hit && (root || parent === -2);
    else if (hit && parent >= 0) keep = false;
    if (gone) into[at] = -2;
    else if (!keep) into[at] = parent;
    else {
      above[count] = parent < 0 ? -1 : parent;
      of[count] = at;
      into[at] = count++;
    }
  }
  const pick = (Type, column) => { const out = new Type(count); for (let i = 0; i < count; i++) out[i] = column[of[i]]; return out; };
  const own = tree.own.map((column) => {
    const out = new Float64Array(count);
    for (let at = 0; at < n; at++) if (into[at] >= 0) out[into[at]] += column[at];
    return out;
  });
  return kt.indexed({ n: count, f: pick(Int32Array, tree.f), how: pick(Uint8Array, tree.how), calls: pick(Float64Array, tree.calls), own, up: above.slice(0, count) });
}, raw);
// Returns the outermost nodes of a function, so that recursion counts once.
kt.outermost = (tree, isOf) => {
  const found = [], inside = new Uint8Array(tree.n);
  for (let at = 0; at < tree.n; at++) {
    const under = tree.up[at] >= 0 && inside[tree.up[at]];
    const hit = isOf(tree.f[at]);
    if (hit && !under) found.push(at);
    inside[at] = under || hit ? 1 : 0;
  }
  return found;
};
// Computes functions, callers and callees from the trees alone, when operations have changed them.
kt.tablesFrom = (raws) => {
  const functions = new Map(), arcs = new Map(), hows = kt.data.hows;
  for (const tree of raws) {
    for (let at = 0; at < tree.n; at++) {
      const f = tree.f[at];
      if (f < 0) continue;
      let row = functions.get(f);
      if (!row) functions.set(f, row = { f, calls: 0, ended: 0, net: 0, elapsed: 0, slowest: -1, at: 0, derived: true });
      row.calls += tree.calls[at];
      row.net += tree.own[0][at];
      // Recursion counts once.
      let above = tree.up[at];
      while (above >= 0 && tree.f[above] !== f) above = tree.up[above];
      if (above < 0) row.elapsed += tree.sums[0][at];
      const from = tree.up[at] >= 0 && tree.f[tree.up[at]] >= 0 ? tree.f[tree.up[at]] : kt.NONE;
      const key = from + " " + f + " " + tree.how[at];
      let arc = arcs.get(key);
      if (!arc) arcs.set(key, arc = { from, to: f, how: hows[tree.how[at]], calls: 0, ended: 0, elapsed: 0 });
      arc.calls += tree.calls[at];
      arc.elapsed += tree.sums[0][at];
    }
  }
  return { functions, ...kt.beside(arcs.values()) };
};
