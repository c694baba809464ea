// @ts-check
// Call tree as an icicle graph: callers above, width by weight.
import { SMALLER } from "../core/codes.js";
import { cutText } from "../core/format.js";
import { children } from "../core/tree.js";
import { follow, wayTo } from "../core/words.js";
import { DARK_ALPHA, fitCanvas, letterWidth, MONOSPACE, redrawWith } from "../ui/canvas.js";
import { changeColor, colorOf, DARK_TEXT, textColor } from "../ui/color.js";
import { byId, isShortcut, root } from "../ui/dom.js";
import { on, set, state, weight } from "../ui/state.js";
import { cssColor, isDark } from "../ui/theme.js";
import { hideTip, showTip } from "../ui/tooltip.js";
import { describe, entryOf, factsOf, isDifference, operateByKey, shownTrees, titleOf } from "../ui/trees.js";
import { soon } from "../ui/work.js";
import { frameAt, layoutFrames } from "./icicle_layout.js";
import { matcher } from "./search.js";

/** @typedef {import("./icicle_layout.js").Frame} Frame */

const ROW = 19;
const LEAST_ROWS = 4;
const ABOVE_ALPHA = 0.55;
const NO_MATCH_ALPHA = 0.4;
const LETTERS_OF_A_NAME = 5;
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
    g.font = MONOSPACE;
    const style = { mark: cssColor("--mark"), ink: cssColor("--ink"), dark: isDark(), letter: letterWidth() };
    const isWanted = matcher();
    for (const [depth, row] of this.rows.entries()) {
      for (const frame of row) this.frame(g, frame, depth * ROW, style, isWanted);
    }
    this.drawFocus(g);
    root.dataset.icicleMs = (performance.now() - began).toFixed(1);
    root.dataset.icicleRects = String(this.rows.reduce((sum, row) => sum + row.length, 0));
  }

  /** @param {Frame} frame @param {number} f @param {string} how */
  fill(frame, f, how) {
    if (!isDifference() || frame.node < 0 || frame.above) return colorOf(f, how);
    const { column } = weight(), all = this.tree.all[column][frame.node], b = this.tree.b[column][frame.node];
    return changeColor((2 * b - all) / (all || 1));
  }

  /** @param {CanvasRenderingContext2D} g @param {Frame} frame @param {number} y
   * @param {{ mark: string, ink: string, dark: boolean, letter: number }} style
   * @param {((f: number) => boolean) | null} isWanted */
  frame(g, frame, y, { mark, ink, dark, letter }, isWanted) {
    const { node, x, w } = frame, isBox = node < 0;
    const f = isBox ? SMALLER : this.tree.f[node], how = isBox ? "call" : entryOf(this.tree, node);
    const isHit = Boolean(isWanted && !isBox && isWanted(f)), isFaint = Boolean(isWanted) && !isHit;
    const standard = dark ? DARK_ALPHA : 1;
    g.globalAlpha = frame.above ? ABOVE_ALPHA : isFaint ? NO_MATCH_ALPHA : standard;
    g.fillStyle = isHit ? mark : this.fill(frame, f, how);
    g.fillRect(x, y, Math.max(0.5, w - (w > 3 ? 1 : 0)), ROW - 1);
    g.globalAlpha = 1;
    if (f >= 0 && f === state.fn && w > 2) {
      g.strokeStyle = ink;
      g.lineWidth = 2;
      g.strokeRect(x + 1, y + 1, w - 3, ROW - 3);
    }
    const title = isBox ? frame.more + " narrow" : titleOf(this.tree, node);
    const text = w > LETTERS_OF_A_NAME * letter ? cutText(title, Math.floor((w - 8) / letter)) : "";
    g.fillStyle = frame.above || isFaint ? ink : isHit || isDifference() ? DARK_TEXT : textColor(f);
    if (text) g.fillText(text, x + 4, y + ROW / 2);
  }

  /** @param {CanvasRenderingContext2D} g */
  drawFocus(g) {
    if (this.focus < 0 || document.activeElement !== this.canvas) return;
    for (const [depth, row] of this.rows.entries()) {
      const frame = row.find((one) => one.node === this.focus);
      if (!frame) continue;
      g.strokeStyle = cssColor("--paper");
      g.lineWidth = 4;
      g.strokeRect(frame.x + 1.5, depth * ROW + 1.5, Math.max(2, frame.w - 4), ROW - 4);
      g.strokeStyle = cssColor("--focus");
      g.lineWidth = 2;
      g.strokeRect(frame.x + 1, depth * ROW + 1, Math.max(2, frame.w - 3), ROW - 3);
      return;
    }
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

  /** Returns the node to which an arrow key moves; undefined if there is none.
   * @param {string} key @param {number} at */
  beside(key, at) {
    const { tree, focus } = this, { column } = weight();
    if (key === "ArrowDown") return children(tree, at, column)[0];
    if (key === "ArrowUp") return at < 0 ? undefined : tree.parent[at];
    const order = children(tree, focus < 0 ? -1 : tree.parent[focus], column);
    return order[order.indexOf(focus) + (key === "ArrowRight" ? 1 : -1)];
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
      const to = this.beside(key, at);
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
