// @ts-check
// Raw trees of call paths: columns of numbers, parents before children, with subtree sums.

/** @param {TreeColumns} columns @returns {RawTree} */
export const rawTree = (columns) => {
  if (columns.raw) return columns.raw;
  const n = columns.f.length, up = new Int32Array(n), open = [];
  for (let at = 0; at < n; at++) {
    open.length = columns.d[at];
    up[at] = open.length ? open[open.length - 1] : -1;
    open.push(at);
  }
  columns.raw = indexed({
    n,
    f: Int32Array.from(columns.f),
    how: Uint8Array.from(columns.h),
    calls: Float64Array.from(columns.c),
    own: columns.w.map((w) => Float64Array.from(w)),
    up,
  });
  return columns.raw;
};
/** Adds sums, and the first child and next sibling of each node; parents precede children.
 * @param {RawNodes} nodes @returns {RawTree} */
export const indexed = (nodes) => {
  const { n, up } = nodes;
  const first = new Int32Array(n).fill(-1), next = new Int32Array(n).fill(-1), roots = [];
  for (let at = n - 1; at >= 0; at--) {
    if (up[at] < 0) roots.push(at);
    else {
      next[at] = first[up[at]];
      first[up[at]] = at;
    }
  }
  roots.reverse();
  const sums = nodes.own.map((own) => {
    const sum = Float64Array.from(own);
    for (let at = n - 1; at >= 0; at--) if (up[at] >= 0) sum[up[at]] += sum[at];
    return sum;
  });
  return { ...nodes, roots, sums, first, next };
};
const DROPPED = -2;
/** @param {RawTree} tree @param {PathOperation} operation @returns {RawTree} */
const applyOne = (tree, [what, f]) => {
  const { n, up } = tree;
  // By node: its number in the new tree, or that of the node which takes its own; by new node: the
  // old one, and its parent.
  const into = new Int32Array(n), of = new Int32Array(n), above = new Int32Array(n);
  let count = 0;
  for (let at = 0; at < n; at++) {
    const isRoot = up[at] < 0, parent = isRoot ? -1 : into[up[at]], hit = tree.f[at] === f;
    let gone = false;
    if (what === "drop") gone = hit || (!isRoot && parent === DROPPED);
    else if (what === "focus") gone = !hit && (isRoot || parent === DROPPED);
    const isMerged = what === "merge" && hit && parent >= 0;
    if (gone) into[at] = DROPPED;
    else if (isMerged) into[at] = parent;
    else {
      above[count] = parent < 0 ? -1 : parent;
      of[count] = at;
      into[at] = count++;
    }
  }
  const kept = of.subarray(0, count);
  const own = tree.own.map((column) => {
    const out = new Float64Array(count);
    for (let at = 0; at < n; at++) if (into[at] >= 0) out[into[at]] += column[at];
    return out;
  });
  return indexed({
    n: count,
    f: kept.map((at) => tree.f[at]),
    how: Uint8Array.from(kept, (at) => tree.how[at]),
    calls: Float64Array.from(kept, (at) => tree.calls[at]),
    own,
    up: above.slice(0, count),
  });
};
/** Removes dropped functions, gives merged ones to their callers, and keeps only the tree below the
 * focus.
 * @param {RawTree} raw @param {PathOperation[]} operations */
export const applyOperations = (raw, operations) => operations.reduce(applyOne, raw);
/** Returns the outermost nodes of a function, so that recursion counts once.
 * @param {RawTree} tree @param {(f: number) => boolean} isOf */
export const outermost = (tree, isOf) => {
  const found = [], inside = new Uint8Array(tree.n);
  for (let at = 0; at < tree.n; at++) {
    const under = tree.up[at] >= 0 && inside[tree.up[at]];
    const hit = isOf(tree.f[at]);
    if (hit && !under) found.push(at);
    inside[at] = under || hit ? 1 : 0;
  }
  return found;
};
