// @ts-check
// Layout of the call tree as an icicle graph: rectangles of all nodes that are wide enough; the
// others are one box per parent.
import { SMALLER } from "../core/codes.js";
import { children, pathTo } from "../core/tree.js";

/** Rectangle of a frame, or of `more` narrow ones (`node` is -1); `above`: of the path to the zoomed
 * node.
 * @typedef {{
 *   x: number, w: number, node: number, above: boolean, parent: number, rest: number, more: number,
 * }} Frame */

// Narrower frames are merged; a box that is narrower still is left out.
const NARROW = 0.6;
const INVISIBLE = 0.1;

/** @param {Partial<Frame>} frame @returns {Frame} */
const frameOf = (frame) => ({ x: 0, w: 0, node: -1, above: false, parent: -1, rest: 0, more: 0, ...frame });
/** Returns the frames by depth.
 * @param {ShownTree} tree @param {number} column @param {number} zoom
 * @param {number} whole what the width stands for
 * @param {number} width */
export const layoutFrames = (tree, column, zoom, whole, width) => {
  const weight = tree.all[column], path = zoom < 0 ? [] : pathTo(tree, zoom);
  const rows = path.map((node) => [frameOf({ w: width, node, above: node !== zoom })]);
  if (!(whole > 0)) return rows;
  const scale = width / whole;
  /** Adds the children of a node from `x` on; returns those whose children are to be added.
   * @param {{ node: number, x: number }} parent @param {Frame[]} row */
  const below = (parent, row) => {
    const order = children(tree, parent.node, column), next = [];
    let x = parent.x;
    for (let i = 0; i < order.length; i++) {
      const node = order[i], w = weight[node] * scale;
      if (w < NARROW) {
        const rest = order.slice(i).reduce((sum, at) => sum + weight[at], 0);
        if (rest * scale > INVISIBLE) {
          row.push(frameOf({ x, w: rest * scale, parent: parent.node, rest, more: order.length - i }));
        }
        break;
      }
      row.push(frameOf({ x, w, node }));
      if (tree.f[node] !== SMALLER) next.push({ node, x });
      x += w;
    }
    return next;
  };
  for (let level = [{ node: zoom, x: 0 }]; level.length > 0;) {
    /** @type {Frame[]} */
    const row = [];
    level = level.flatMap((parent) => below(parent, row));
    if (row.length > 0) rows.push(row);
  }
  return rows;
};
/** Returns the frame at a place in a row.
 * @param {Frame[]} row @param {number} x */
export const frameAt = (row, x) => {
  let low = 0, high = row.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].x + row[middle].w <= x) low = middle + 1;
    else high = middle;
  }
  const frame = row[low];
  return frame && frame.x <= x ? frame : null;
};
/** Returns the node to which an arrow key moves from a node; undefined if there is none.
 * @param {ShownTree} tree @param {string} key
 * @param {number} at the focus, or the zoomed node without one
 * @param {number} focus @param {number} column */
export const nodeBeside = (tree, key, at, focus, column) => {
  if (key === "ArrowDown") return children(tree, at, column)[0];
  if (key === "ArrowUp") return at < 0 ? undefined : tree.parent[at];
  const order = children(tree, focus < 0 ? -1 : tree.parent[focus], column);
  return order[order.indexOf(focus) + (key === "ArrowRight" ? 1 : -1)];
};
