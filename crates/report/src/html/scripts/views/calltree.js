// @ts-check
// Call tree as a table with rows that open, for keyboards and screen readers.
import { SMALLER } from "../core/codes.js";
import { formatChange, formatCount, percent, signed, verdict } from "../core/format.js";
import { children, hasChildren, pathTo } from "../core/tree.js";
import { follow, wayTo } from "../core/words.js";
import { colorOf, swatch } from "../ui/color.js";
import { byId, closest, isShortcut, make } from "../ui/dom.js";
import { on, set, state, weight } from "../ui/state.js";
import { entryOf, isDifference, operateByKey, shownTrees, titleOf } from "../ui/trees.js";
import { matcher } from "./search.js";

/** @typedef {{
 *   tr: HTMLTableRowElement, node: number, depth: number, way: string, hasKids: boolean,
 * }} TreeRow */

const MOST_ROWS = 3000;
const MOST_INDENTED = 60;
const LONGEST_PATH = 40;

const heads = () => {
  const { title } = weight();
  if (isDifference()) return ["function", "first", "second", "difference", ""];
  if (state.mode === "up") return ["function", title, "share"];
  return ["function", title + ", with callees", "share", "itself", "calls"];
};
/** @param {string} text */
const cell = (text, cls = "") => make("td", { role: "gridcell", class: cls }, text);
/** @param {ShownTree} tree @param {number} node */
const cells = (tree, node) => {
  const { column, bare } = weight(), all = tree.all[column][node], whole = tree.totals[column];
  if (isDifference()) {
    const b = tree.b[column][node], a = all - b, word = verdict(b - a);
    return [cell(bare(a)), cell(bare(b)), cell(signed(b - a, bare), word), cell(formatChange(a, b), word)];
  }
  const part = cell(percent(all, whole), "part");
  part.style.setProperty("--part", (100 * all / (whole || 1)).toFixed(1) + "%");
  if (state.mode === "up") return [cell(bare(all)), part];
  const hasCount = tree.f[node] !== SMALLER && tree.calls[node] > 0;
  const calls = hasCount ? formatCount(tree.calls[node]) : "";
  return [cell(bare(all)), part, cell(bare(tree.own[column][node])), cell(calls)];
};

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

  /** @param {number} node @param {number} depth @param {number} position @param {number} size */
  line(node, depth, position, size) {
    const { tree } = this, way = wayTo(tree, node), hasKids = hasChildren(tree, node), f = tree.f[node];
    const isOpen = this.open.has(way), isFound = matcher()?.(f);
    const sign = hasKids ? (isOpen ? "▾" : "▸") : "";
    const twist = make("span", { class: "twist", "aria-hidden": "true" }, sign);
    const name = make("span", { class: isFound ? "name found" : "name" }, titleOf(tree, node));
    const color = swatch(colorOf(f, entryOf(tree, node)));
    const head = make("th", { scope: "row", role: "rowheader" }, twist, color, name);
    head.style.paddingLeft = (0.4 + Math.min(depth, MOST_INDENTED) * 0.85) + "rem";
    const place = {
      "aria-level": String(depth + 1), "aria-posinset": String(position), "aria-setsize": String(size),
    };
    const tr = make("tr", { role: "row", ...place, tabindex: "-1" }, head, ...cells(tree, node));
    if (hasKids) tr.setAttribute("aria-expanded", String(isOpen));
    if (f >= 0 && f === state.fn) tr.className = "chosen";
    tr.dataset.row = String(this.rows.push({ tr, node, depth, way, hasKids }) - 1);
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
        this.line(kid, depth, at + 1, order.length);
        if (this.open.has(wayTo(tree, kid))) walk(kid, depth + 1);
      });
    };
    walk(-1, 0);
    const columns = heads().map((head, at) =>
      make("th", { scope: "col", role: "columnheader", class: at ? "" : "first" }, head));
    table.tHead?.replaceChildren(make("tr", { role: "row" }, ...columns));
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
    for (const { tr, node } of this.rows) {
      const f = this.tree.f[node];
      tr.className = f >= 0 && f === state.fn ? "chosen" : "";
    }
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
