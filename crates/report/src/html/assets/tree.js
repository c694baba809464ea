// Tree for display: nodes of several raw trees, merged by function and kind of entry, and created lazily when their parent is
// opened. A member is three numbers: raw tree, its node, and the node whose figures count (if inverted).
kt.lazy = (raws, members, kind, sides) => {
  const columns = raws.length ? raws[0].own.length : 1;
  const tree = { raws, kind, sides: sides || raws.map(() => 0), n: 0, f: [], how: [], parent: [], start: [], end: [], calls: [], callsB: [], members: [], own: [], all: [], b: [], orders: [] };
  for (let c = 0; c < columns; c++) for (const list of [tree.own, tree.all, tree.b]) list.push([]);
  grow(tree, members, -1);
  tree.roots = tree.n;
  tree.totals = tree.all.map((sums) => sums.reduce((a, b) => a + b, 0));
  tree.totalsB = tree.b.map((sums) => sums.reduce((a, b) => a + b, 0));
  return tree;
};
const grow = (tree, members, under) => {
  const groups = new Map();
  for (let i = 0; i < members.length; i += 3) {
    const raw = tree.raws[members[i]], at = members[i + 1];
    const how = under < 0 && tree.kind !== "down" ? 0 : raw.how[at];
    const key = (raw.f[at] + 16777216) * 8 + how;
    const list = groups.get(key);
    if (list) list.push(members[i], at, members[i + 2]);
    else groups.set(key, [members[i], at, members[i + 2]]);
  }
  for (const list of groups.values()) {
    const first = tree.raws[list[0]];
    tree.f.push(first.f[list[1]]);
    tree.how.push(under < 0 && tree.kind !== "down" ? 0 : first.how[list[1]]);
    tree.parent.push(under);
    tree.start.push(-1);
    tree.end.push(-1);
    let calls = 0, callsB = 0;
    const columns = tree.all.length, own = new Array(columns).fill(0), all = new Array(columns).fill(0), b = new Array(columns).fill(0);
    for (let i = 0; i < list.length; i += 3) {
      const raw = tree.raws[list[i]], at = list[i + 1], of = list[i + 2], isB = tree.sides[list[i]] === 1;
      calls += raw.calls[of];
      if (isB) callsB += raw.calls[of];
      for (let c = 0; c < columns; c++) {
        const figure = tree.kind === "up" ? raw.own[c][of] : raw.sums[c][of];
        all[c] += figure;
        if (isB) b[c] += figure;
        if (tree.kind === "down" || tree.kind === "from") own[c] += raw.own[c][at];
        else if (raw.up[at] < 0) own[c] += figure;
      }
    }
    tree.calls.push(calls);
    tree.callsB.push(callsB);
    for (let c = 0; c < columns; c++) { tree.own[c].push(own[c]); tree.all[c].push(all[c]); tree.b[c].push(b[c]); }
    tree.members.push(list);
    tree.n++;
  }
};
const expand = (tree, node) => {
  if (tree.start[node] >= 0) return;
  const list = tree.members[node], below = [], down = tree.kind === "down" || tree.kind === "from";
  for (let i = 0; i < list.length; i += 3) {
    const raw = tree.raws[list[i]], at = list[i + 1];
    if (down) for (let kid = raw.first[at]; kid >= 0; kid = raw.next[kid]) below.push(list[i], kid, kid);
    else if (raw.up[at] >= 0) below.push(list[i], raw.up[at], list[i + 2]);
  }
  tree.start[node] = tree.n;
  grow(tree, below, node);
  tree.end[node] = tree.n;
};
// Returns the children of a node, or the roots for -1, heaviest first; nodes that are too small are merged at the end.
kt.children = (tree, node, column) => {
  const orders = tree.orders[column] || (tree.orders[column] = new Map());
  let order = orders.get(node);
  if (!order) {
    if (node >= 0) expand(tree, node);
    const begin = node < 0 ? 0 : tree.start[node], end = node < 0 ? tree.roots : tree.end[node];
    order = Array.from({ length: end - begin }, (_, i) => begin + i);
    const weight = tree.all[column];
    order.sort((a, b) => (tree.f[a] === kt.SMALLER) - (tree.f[b] === kt.SMALLER) || weight[b] - weight[a] || tree.f[a] - tree.f[b]);
    orders.set(node, order);
  }
  return order;
};
// Checks whether a node has children, without creating them.
kt.hasKids = (tree, node) => {
  const list = tree.members[node], down = tree.kind === "down" || tree.kind === "from";
  for (let i = 0; i < list.length; i += 3) {
    const raw = tree.raws[list[i]], at = list[i + 1];
    if (down ? raw.first[at] >= 0 : raw.up[at] >= 0) return true;
  }
  return false;
};
// All paths; inverted, by self time; below a function; and to a function, with its total.
kt.treeOf = (raws, mode, f, sides) => {
  const members = [];
  raws.forEach((raw, t) => {
    if (mode === "up") {
      for (let at = 0; at < raw.n; at++) if (raw.own.some((own) => own[at] > 0)) members.push(t, at, at);
    } else for (const at of mode === "down" ? raw.roots : kt.outermost(raw, (g) => g === f)) members.push(t, at, at);
  });
  return kt.lazy(raws, members, mode, sides);
};
// Path to a node in words, by which a link or another tree finds it again.
kt.wayTo = (tree, node) => {
  const words = [];
  for (let at = node; at >= 0; at = tree.parent[at]) words.push(kt.worded(tree.f[at]) + (tree.how[at] ? ":" + tree.how[at] : ""));
  return words.reverse().join(",");
};
kt.follow = (tree, way) => {
  let node = -1;
  for (const word of way ? way.split(",") : []) {
    const [name, how] = [word.split(":")[0], Number(word.split(":")[1] || 0)], f = kt.numbered(name);
    const next = kt.children(tree, node, 0).find((at) => tree.f[at] === f && tree.how[at] === how);
    if (next === undefined) break;
    node = next;
  }
  return node;
};
kt.pathTo = (tree, node) => {
  const nodes = [];
  for (let at = node; at >= 0; at = tree.parent[at]) nodes.push(at);
  return nodes.reverse();
};
