// @ts-check
// Tree for display: nodes of several raw trees, merged by function and kind of entry, and created
// lazily when their parent is opened. A member is three numbers: raw tree, its node, and the node
// whose figures count (if inverted).
import { SMALLER } from "./codes.js";
import { outermost } from "./raw.js";

const MEMBER = 3;
const FUNCTION_OFFSET = 16777216;
const KINDS = 8;
/** @param {ShownTree} tree */
const goesDown = (tree) => tree.kind === "down" || tree.kind === "from";

/** @param {RawTree[]} raws @param {number[]} members @param {TreeMode} kind
 * @param {number[]} [sides]
 * @returns {ShownTree} */
const lazyTree = (raws, members, kind, sides) => {
  const columns = raws.length ? raws[0].own.length : 1;
  /** @returns {number[][]} */
  const empty = () => Array.from({ length: columns }, () => []);
  /** @type {ShownTree} */
  const tree = {
    raws, kind, sides: sides || raws.map(() => 0), n: 0, roots: 0, f: [], how: [], parent: [], start: [],
    end: [], calls: [],
    callsB: [], members: [], own: empty(), all: empty(), b: empty(), orders: [], totals: [], totalsB: [],
  };
  grow(tree, members, -1);
  tree.roots = tree.n;
  tree.totals = tree.all.map((sums) => sums.reduce((a, b) => a + b, 0));
  tree.totalsB = tree.b.map((sums) => sums.reduce((a, b) => a + b, 0));
  return tree;
};
/** Creates the nodes below `under`, or the roots for -1.
 * @param {ShownTree} tree @param {number[]} members @param {number} under */
const grow = (tree, members, under) => {
  // Roots that are not entered from above have no kind.
  const isBare = under < 0 && tree.kind !== "down";
  /** @type {Map<number, number[]>} */
  const groups = new Map();
  for (let i = 0; i < members.length; i += MEMBER) {
    const raw = tree.raws[members[i]], at = members[i + 1];
    const key = (raw.f[at] + FUNCTION_OFFSET) * KINDS + (isBare ? 0 : raw.how[at]);
    const list = groups.get(key);
    if (list) list.push(members[i], at, members[i + 2]);
    else groups.set(key, [members[i], at, members[i + 2]]);
  }
  for (const list of groups.values()) {
    const first = tree.raws[list[0]];
    tree.f.push(first.f[list[1]]);
    tree.how.push(isBare ? 0 : first.how[list[1]]);
    tree.parent.push(under);
    tree.start.push(-1);
    tree.end.push(-1);
    addFigures(tree, list);
    tree.members.push(list);
    tree.n++;
  }
};
/** @param {ShownTree} tree @param {number[]} list */
const addFigures = (tree, list) => {
  let calls = 0, callsB = 0;
  const columns = tree.all.length;
  const own = new Array(columns).fill(0), all = new Array(columns).fill(0), b = new Array(columns).fill(0);
  for (let i = 0; i < list.length; i += MEMBER) {
    const raw = tree.raws[list[i]], at = list[i + 1], of = list[i + 2], isB = tree.sides[list[i]] === 1;
    calls += raw.calls[of];
    if (isB) callsB += raw.calls[of];
    for (let c = 0; c < columns; c++) {
      const figure = tree.kind === "up" ? raw.own[c][of] : raw.sums[c][of];
      all[c] += figure;
      if (isB) b[c] += figure;
      if (goesDown(tree)) own[c] += raw.own[c][at];
      else if (raw.up[at] < 0) own[c] += figure;
    }
  }
  tree.calls.push(calls);
  tree.callsB.push(callsB);
  for (let c = 0; c < columns; c++) {
    tree.own[c].push(own[c]);
    tree.all[c].push(all[c]);
    tree.b[c].push(b[c]);
  }
};
/** @param {ShownTree} tree @param {number} node */
const expand = (tree, node) => {
  if (tree.start[node] >= 0) return;
  const list = tree.members[node], below = [];
  for (let i = 0; i < list.length; i += MEMBER) {
    const raw = tree.raws[list[i]], at = list[i + 1];
    if (goesDown(tree)) {
      for (let kid = raw.first[at]; kid >= 0; kid = raw.next[kid]) below.push(list[i], kid, kid);
    } else if (raw.up[at] >= 0) below.push(list[i], raw.up[at], list[i + 2]);
  }
  tree.start[node] = tree.n;
  grow(tree, below, node);
  tree.end[node] = tree.n;
};
/** Returns the children of a node, or the roots for -1, heaviest first; nodes that are too small are
 * merged at the end.
 * @param {ShownTree} tree @param {number} node @param {number} column */
export const children = (tree, node, column) => {
  const orders = tree.orders[column] || (tree.orders[column] = new Map());
  let order = orders.get(node);
  if (!order) {
    if (node >= 0) expand(tree, node);
    const begin = node < 0 ? 0 : tree.start[node], end = node < 0 ? tree.roots : tree.end[node];
    order = Array.from({ length: end - begin }, (_, i) => begin + i);
    const weight = tree.all[column];
    /** @param {number} at */
    const isRest = (at) => Number(tree.f[at] === SMALLER);
    order.sort((a, b) => isRest(a) - isRest(b) || weight[b] - weight[a] || tree.f[a] - tree.f[b]);
    orders.set(node, order);
  }
  return order;
};
/** Checks whether a node has children, without creating them.
 * @param {ShownTree} tree @param {number} node */
export const hasChildren = (tree, node) => {
  const list = tree.members[node];
  for (let i = 0; i < list.length; i += MEMBER) {
    const raw = tree.raws[list[i]], at = list[i + 1];
    if (goesDown(tree) ? raw.first[at] >= 0 : raw.up[at] >= 0) return true;
  }
  return false;
};
/** Creates the tree of all paths; inverted, by self time; below a function; or to a function, with
 * its total.
 * @param {RawTree[]} raws @param {TreeMode} mode @param {number} f @param {number[]} [sides] */
export const treeOf = (raws, mode, f, sides) => {
  /** @type {number[]} */
  const members = [];
  raws.forEach((raw, t) => {
    if (mode === "up") {
      for (let at = 0; at < raw.n; at++) if (raw.own.some((own) => own[at] > 0)) members.push(t, at, at);
      return;
    }
    for (const at of mode === "down" ? raw.roots : outermost(raw, (g) => g === f)) members.push(t, at, at);
  });
  return lazyTree(raws, members, mode, sides);
};
/** Returns the nodes from the root to a node.
 * @param {ShownTree} tree @param {number} node */
export const pathTo = (tree, node) => {
  const nodes = [];
  for (let at = node; at >= 0; at = tree.parent[at]) nodes.push(at);
  return nodes.reverse();
};
