// @ts-check
// Call tree as an icicle graph: callers above, width by weight.
import { SMALLER } from "../core/codes.js";
import { follow, wayTo } from "../core/words.js";
import { fitCanvas, redrawWith } from "../ui/canvas.js";
import { byId, isShortcut, root } from "../ui/dom.js";
import { on, set, state, weight } from "../ui/state.js";
import { hideTip, showTip } from "../ui/tooltip.js";
import { describe, factsOf, operateByKey, shownTrees, titleOf } from "../ui/trees.js";
import { soon } from "../ui/work.js";
import { drawFocus, drawFrames, ROW } from "./icicle_draw.js";
import { frameAt, layoutFrames, nodeBeside } from "./icicle_layout.js";

/** @typedef {import("./icicle_layout.js").Frame} Frame */

const LEAST_ROWS = 4;
const HINT =
  "Click: zoom in; Backspace or the path above: zoom out. Keys: arrows, Enter, C choose, F focus, M merge," +
  " X drop.";

class Icicle {
  /** @param {HTMLCanvasElement} canvas @param {number} index of the tree */
  constructor(canvas, index) {
    this.canvas = canvas;
    this.index = index;
    this.status = byId("icicle-status");
    // Without a second profile there is no second tree.
    this.tree = shownTrees()[index];
    /** @type {Frame[][]} */
    this.rows = [];
    this.zoom = -1;
    this.focus = -1;
    this.soon = soon(() => this.draw());
  }

  // Side by side, equal widths stand for equal weights.
  whole() {
    const { column } = weight();
    if (this.zoom >= 0) return this.tree.all[column][this.zoom];
    return Math.max(...shownTrees().map((tree) => tree.totals[column] || 0));
  }

  draw() {
    const { canvas, tree } = this;
    if (canvas.hidden || !tree || state.show !== "flame") return;
    const began = performance.now();
    this.rows = layoutFrames(tree, weight().column, this.zoom, this.whole(), canvas.clientWidth);
    const g = fitCanvas(canvas, Math.max(LEAST_ROWS, this.rows.length) * ROW + 1);
    drawFrames(g, tree, this.rows);
    if (this.focus >= 0 && document.activeElement === canvas) drawFocus(g, this.rows, this.focus);
    root.dataset.icicleMs = (performance.now() - began).toFixed(1);
    root.dataset.icicleRects = String(this.rows.reduce((sum, row) => sum + row.length, 0));
  }

  /** Zooms to a node.
   * @param {number} node @param {Partial<PageState>} [more] */
  into(node, more = {}) {
    if (node >= 0 && this.tree.f[node] === SMALLER) return;
    this.focus = node;
    set({ zoom: wayTo(this.tree, node), ...more });
    this.soon();
  }

  /** @param {number} node */
  say(node) {
    this.status.textContent = node < 0 || node >= this.tree.n ? HINT : describe(this.tree, node);
  }

  follow() {
    this.zoom = follow(this.tree, state.zoom);
    if (this.focus >= this.tree.n) this.focus = -1;
    this.say(this.focus >= 0 ? this.focus : this.zoom);
    this.soon();
  }

  renew() {
    this.tree = shownTrees()[this.index];
    const figure = this.canvas.closest("figure");
    if (figure) figure.hidden = !this.tree;
    if (!this.tree) return;
    this.focus = -1;
    this.follow();
  }

  /** @param {MouseEvent} event */
  find(event) {
    const box = this.canvas.getBoundingClientRect();
    return frameAt(this.rows[Math.floor((event.clientY - box.top) / ROW)] || [], event.clientX - box.left);
  }

  /** @param {MouseEvent} event */
  hover(event) {
    const frame = this.find(event);
    this.canvas.style.cursor = frame && frame.node >= 0 ? "pointer" : "default";
    if (!frame) hideTip();
    else if (frame.node >= 0) showTip(event, titleOf(this.tree, frame.node), factsOf(this.tree, frame.node));
    else {
      const together = weight().unit(frame.rest);
      showTip(event, frame.more + " narrow frames", [["together", together], ["", "zoom in to see them"]]);
    }
  }

  /** @param {MouseEvent} event */
  click(event) {
    const frame = this.find(event), { tree } = this;
    const node = !frame ? -1 : frame.node < 0 ? frame.parent : frame.node;
    if (node < 0) return;
    const isChoice = ["down", "up"].includes(state.mode) && tree.f[node] >= 0;
    this.into(node === this.zoom ? tree.parent[node] : node, isChoice ? { fn: tree.f[node] } : {});
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isShortcut(event)) return;
    const { key } = event, at = this.focus < 0 ? this.zoom : this.focus;
    const isArrow = ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"].includes(key);
    const isOut = key === "Backspace" || key === "Escape";
    if (isArrow || isOut || key === "Enter") event.preventDefault();
    if (key === "Enter") {
      if (at >= 0) this.into(at);
    } else if (isOut) {
      if (this.zoom >= 0) this.into(this.tree.parent[this.zoom]);
    } else if (isArrow) {
      const to = nodeBeside(this.tree, key, at, this.focus, weight().column);
      if (to === undefined) return;
      this.focus = to;
      this.say(to);
      this.soon();
    } else if (at >= 0) operateByKey(key, this.tree.f[at]);
  }
}
/** Draws the tree number `index` on a canvas; returns a function that zooms to a node.
 * @param {HTMLCanvasElement} canvas @param {number} index */
export const startIcicle = (canvas, index) => {
  const icicle = new Icicle(canvas, index);
  canvas.addEventListener("mousemove", (event) => icicle.hover(event));
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("click", (event) => icicle.click(event));
  canvas.addEventListener("keydown", (event) => icicle.key(event));
  on(["trees"], () => icicle.renew());
  on(["zoom"], () => { if (icicle.tree) icicle.follow(); });
  on(["weight", "fn", "q", "show"], icicle.soon);
  canvas.addEventListener("focus", icicle.soon);
  canvas.addEventListener("blur", icicle.soon);
  redrawWith(canvas, icicle.soon);
  icicle.renew();
  icicle.draw();
  return (/** @type {number} */ node) => icicle.into(node);
};
