// The call tree as arrays: parents come before children, the children of a node follow each other.
// `sources` are lists of [raw tree, its node]; nodes of the same function and kind of entry merge.
kt.merge = (first, childrenOf, valuesOf) => {
  const f = [], how = [], parent = [], start = [], calls = [];
  const columns = kt.data.weights ? 4 : 1;
  const own = Array.from({ length: columns }, () => []);
  let queue = [];
  const add = (members, under) => {
    const groups = new Map();
    for (const member of members) {
      const key = member.f * 8 + member.how;
      if (groups.has(key)) groups.get(key).push(member);
      else groups.set(key, [member]);
    }
    for (const group of groups.values()) {
      const at = f.length;
      f.push(group[0].f);
      how.push(group[0].how);
      parent.push(under);
      calls.push(0);
      for (const column of own) column.push(0);
      for (const member of group) valuesOf(member, (c, w) => {
        calls[at] += c;
        for (let i = 0; i < columns; i++) own[i][at] += w(i);
      });
      queue.push(group);
    }
  };
  add(first, -1);
  for (let at = 0; at < queue.length; at++) {
    start.push(f.length);
    const children = queue[at].flatMap(childrenOf);
    if (children.length > 0) add(children, at);
    queue[at] = null;
  }
  start.push(f.length);
  const n = f.length;
  const all = own.map((column) => {
    const sums = Float64Array.from(column);
    for (let at = n - 1; at > 0; at--) if (parent[at] >= 0) sums[parent[at]] += sums[at];
    return sums;
  });
  // Nodes of one parent are next to each other, and so are the roots.
  const roots = parent.findIndex((p) => p >= 0);
  const tree = { n, f, how, parent, start, calls, own: own.map((c) => Float64Array.from(c)), all, roots: roots < 0 ? n : roots };
  tree.totals = all.map((sums) => sums.subarray(0, tree.roots).reduce((a, b) => a + b, 0));
  tree.orders = [];
  return tree;
};
// The children of a node, or the roots for -1, heaviest first; what is too small to be told apart last.
kt.children = (tree, node, column) => {
  const orders = tree.orders[column] || (tree.orders[column] = new Map());
  let order = orders.get(node);
  if (!order) {
    const begin = node < 0 ? 0 : tree.start[node], end = node < 0 ? tree.roots : tree.start[node + 1];
    order = Array.from({ length: end - begin }, (_, i) => begin + i);
    const weight = tree.all[column];
    order.sort((a, b) => (tree.f[a] === kt.SMALLER) - (tree.f[b] === kt.SMALLER) || weight[b] - weight[a]);
    orders.set(node, order);
  }
  return order;
};
// A group's tree as it is in the document, with an index of children.
kt.raw = (number) => {
  const tree = kt.data.groups[number].tree;
  if (tree.kids) return tree;
  const n = tree.d.length, open = [];
  tree.kids = new Array(n);
  tree.up = new Int32Array(n);
  tree.first = [];
  for (let at = 0; at < n; at++) {
    open.length = tree.d[at];
    const parent = open.length ? open[open.length - 1] : -1;
    tree.up[at] = parent;
    if (parent < 0) tree.first.push(at);
    else if (tree.kids[parent]) tree.kids[parent].push(at);
    else tree.kids[parent] = [at];
    open.push(at);
  }
  tree.sums = tree.w.map((column) => {
    const sums = Float64Array.from(column);
    for (let at = n - 1; at >= 0; at--) if (tree.up[at] >= 0) sums[tree.up[at]] += sums[at];
    return sums;
  });
  return tree;
};
const member = (tree, at) => ({ tree, at, f: tree.f[at], how: tree.h[at] });
const below = ({ tree, at }) => (tree.kids[at] || []).map((kid) => member(tree, kid));
const values = ({ tree, at }, add) => add(tree.c[at], (i) => tree.w[i][at]);

// All paths of the groups.
kt.treeOf = (groups) => {
  const trees = groups.map(kt.raw);
  return kt.merge(trees.flatMap((tree) => tree.first.map((at) => member(tree, at))), below, values);
};
// Where a function is not below itself: recursion counts once.
const outermost = (tree, f) => {
  const found = [];
  const inside = new Uint8Array(tree.f.length);
  for (let at = 0; at < tree.f.length; at++) {
    const up = tree.up[at];
    const under = up >= 0 && inside[up];
    if (tree.f[at] === f && !under) found.push(at);
    inside[at] = under || tree.f[at] === f ? 1 : 0;
  }
  return found;
};
// Everything that a function does, whoever called it.
kt.treeFrom = (groups, f) => kt.merge(groups.map(kt.raw).flatMap((tree) =>
  outermost(tree, f).map((at) => ({ ...member(tree, at), how: 0 }))), below, values);
// On whose behalf a function runs: its callers below it, with the time of the function.
kt.treeTo = (groups, f) => kt.merge(groups.map(kt.raw).flatMap((tree) =>
  outermost(tree, f).map((at) => ({ tree, at, of: at, f, how: 0 }))),
  ({ tree, at, of }) => (tree.up[at] < 0 ? [] : [{ ...member(tree, tree.up[at]), of }]),
  ({ tree, at, of }, add) => add(tree.c[of], (i) => (tree.up[at] < 0 ? tree.sums[i][of] : 0)));
