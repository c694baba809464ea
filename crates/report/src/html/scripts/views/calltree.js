// @ts-check
// Call tree as a table with rows that open, for keyboards and screen readers.
import { SMALLER } from "../core/codes.js";
import { children, hasChildren, pathTo } from "../core/tree.js";
import { follow, wayTo } from "../core/words.js";
import { byId, closest, isShortcut } from "../ui/dom.js";
import { on, set, state, weight } from "../ui/state.js";
import { operateByKey, shownTrees } from "../ui/trees.js";
import { headRow, nodeRow, rowClass } from "./calltree_row.js";

/** @typedef {import("./calltree_row.js").RowPlace & { tr: HTMLTableRowElement, way: string }} TreeRow */

const MOST_ROWS = 3000;
const LONGEST_PATH = 40;

class CallTree {
  constructor() {
    this.table = byId("calltree", HTMLTableElement);
    this.body = this.table.tBodies[0];
    this.tree = shownTrees()[0];
    /** Ways of the open nodes. @type {Set<string>} */
    this.open = new Set();
    /** @type {TreeRow[]} */
    this.rows = [];
    this.current = "";
  }

  draw() {
    if (state.show !== "table" || !this.tree) return;
    const { table, tree } = this, { column } = weight(), had = table.contains(document.activeElement);
    this.rows = [];
    /** @param {number} node @param {number} depth */
    const walk = (node, depth) => {
      const order = children(tree, node, column);
      order.forEach((kid, at) => {
        if (this.rows.length >= MOST_ROWS || !(tree.all[column][kid] > 0)) return;
        const way = wayTo(tree, kid), hasKids = hasChildren(tree, kid), isOpen = this.open.has(way);
        const place = { node: kid, depth, hasKids, isOpen, position: at + 1, size: order.length };
        const tr = nodeRow(tree, place);
        tr.dataset.row = String(this.rows.push({ ...place, tr, way }) - 1);
        if (isOpen) walk(kid, depth + 1);
      });
    };
    walk(-1, 0);
    table.tHead?.replaceChildren(headRow());
    this.body.replaceChildren(...this.rows.map((row) => row.tr));
    const row = this.rows.find((one) => one.way === this.current) ?? this.rows[0];
    if (!row) return;
    row.tr.tabIndex = 0;
    if (had) row.tr.focus();
  }

  /** @param {number} to */
  move(to) {
    const row = this.rows[to];
    if (!row) return;
    for (const { tr } of this.rows) tr.tabIndex = -1;
    row.tr.tabIndex = 0;
    row.tr.focus();
    this.current = row.way;
  }

  /** @param {TreeRow} row @param {boolean} wanted */
  toggle(row, wanted) {
    if (!row.hasKids || this.open.has(row.way) === wanted) return;
    if (wanted) this.open.add(row.way);
    else this.open.delete(row.way);
    this.current = row.way;
    this.draw();
  }

  /** @param {TreeRow} row */
  choose(row) {
    const f = this.tree.f[row.node];
    if (f >= 0) set({ fn: f });
  }

  /** Opens the heaviest path as long as it dominates.
   * @param {TreeRow} row */
  openHeaviest(row) {
    const { tree } = this, { column } = weight();
    let { node } = row;
    for (let i = 0; i < LONGEST_PATH; i++) {
      this.open.add(wayTo(tree, node));
      const first = children(tree, node, column)[0];
      if (first === undefined || tree.f[first] === SMALLER) break;
      if (tree.all[column][first] * 2 < tree.all[column][node]) break;
      node = first;
    }
    this.draw();
  }

  /** @param {number} at */
  parentOf(at) {
    for (let i = at - 1; i >= 0; i--) if (this.rows[i].depth < this.rows[at].depth) return i;
    return at;
  }

  /** @param {MouseEvent} event */
  click(event) {
    const tr = /** @type {HTMLTableRowElement | null} */ (closest(event, "tr"));
    if (!tr) return;
    const row = this.rows[Number(tr.dataset.row)];
    this.current = row.way;
    if (closest(event, ".twist") || event.detail === 2) this.toggle(row, !this.open.has(row.way));
    this.choose(row);
    tr.focus();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const tr = /** @type {HTMLTableRowElement | null} */ (closest(event, "tr"));
    if (isShortcut(event) || !tr) return;
    const at = Number(tr.dataset.row), row = this.rows[at], { key } = event, isOpen = this.open.has(row.way);
    /** @type {Record<string, () => void>} */
    const acts = {
      ArrowDown: () => this.move(at + 1),
      ArrowUp: () => this.move(at - 1),
      Home: () => this.move(0),
      End: () => this.move(this.rows.length - 1),
      ArrowRight: () => (row.hasKids && !isOpen ? this.toggle(row, true) : this.move(at + 1)),
      ArrowLeft: () => (isOpen ? this.toggle(row, false) : this.move(this.parentOf(at))),
      Enter: () => this.choose(row),
      "*": () => this.openHeaviest(row),
    };
    if (key.length === 1 && !"*fmxc".includes(key)) return;
    event.preventDefault();
    if (acts[key]) acts[key]();
    else operateByKey(key, this.tree.f[row.node]);
  }

  renew() {
    this.tree = shownTrees()[0];
    // Opens the zoomed node, so that picture and table show the same place; otherwise the heaviest
    // path.
    const { tree, open } = this, node = follow(tree, state.zoom);
    for (const at of node < 0 ? [] : pathTo(tree, node)) open.add(wayTo(tree, at));
    if (open.size === 0) for (const top of children(tree, -1, 0).slice(0, 1)) open.add(wayTo(tree, top));
    this.draw();
  }

  mark() {
    for (const { tr, node } of this.rows) tr.className = rowClass(this.tree.f[node]);
  }
}
export const startCallTree = () => {
  const calltree = new CallTree();
  calltree.body.addEventListener("click", (event) => calltree.click(event));
  calltree.body.addEventListener("keydown", (event) => calltree.key(event));
  on(["trees", "zoom", "show"], () => calltree.renew());
  on(["weight", "q"], () => calltree.draw());
  on(["fn"], () => calltree.mark());
  calltree.renew();
};
