// @ts-check
// Painting of an icicle graph's frames.
import { SMALLER } from "../core/codes.js";
import { cutText } from "../core/format.js";
import { DARK_ALPHA, letterWidth, MONOSPACE } from "../ui/canvas.js";
import { changeColor, colorOf, DARK_TEXT, textColor } from "../ui/color.js";
import { state, weight } from "../ui/state.js";
import { cssColor, isDark } from "../ui/theme.js";
import { entryOf, isDifference, titleOf } from "../ui/trees.js";
import { matcher } from "./search.js";

/** @typedef {import("./icicle_layout.js").Frame} Frame */

// Height of a row of frames, in pixels.
export const ROW = 19;
const ABOVE_ALPHA = 0.55;
const NO_MATCH_ALPHA = 0.4;
const LETTERS_OF_A_NAME = 5;

/** @param {ShownTree} tree @param {Frame} frame @param {number} f @param {string} how */
const fillOf = (tree, frame, f, how) => {
  if (!isDifference() || frame.node < 0 || frame.above) return colorOf(f, how);
  const { column } = weight(), all = tree.all[column][frame.node], b = tree.b[column][frame.node];
  return changeColor((2 * b - all) / (all || 1));
};
/** Paints all frames; those that the search does not find are faint.
 * @param {CanvasRenderingContext2D} g @param {ShownTree} tree @param {Frame[][]} rows by depth */
export const drawFrames = (g, tree, rows) => {
  g.font = MONOSPACE;
  const mark = cssColor("--mark"), ink = cssColor("--ink"), standard = isDark() ? DARK_ALPHA : 1;
  const letter = letterWidth(), isWanted = matcher();
  /** @param {Frame} frame @param {number} y */
  const drawFrame = (frame, y) => {
    const { node, x, w } = frame, isBox = node < 0;
    const f = isBox ? SMALLER : tree.f[node], how = isBox ? "call" : entryOf(tree, node);
    const isHit = Boolean(isWanted && !isBox && isWanted(f)), isFaint = Boolean(isWanted) && !isHit;
    g.globalAlpha = frame.above ? ABOVE_ALPHA : isFaint ? NO_MATCH_ALPHA : standard;
    g.fillStyle = isHit ? mark : fillOf(tree, frame, f, how);
    g.fillRect(x, y, Math.max(0.5, w - (w > 3 ? 1 : 0)), ROW - 1);
    g.globalAlpha = 1;
    if (f >= 0 && f === state.fn && w > 2) {
      g.strokeStyle = ink;
      g.lineWidth = 2;
      g.strokeRect(x + 1, y + 1, w - 3, ROW - 3);
    }
    const title = isBox ? frame.more + " narrow" : titleOf(tree, node);
    const text = w > LETTERS_OF_A_NAME * letter ? cutText(title, Math.floor((w - 8) / letter)) : "";
    g.fillStyle = frame.above || isFaint ? ink : isHit || isDifference() ? DARK_TEXT : textColor(f);
    if (text) g.fillText(text, x + 4, y + ROW / 2);
  };
  for (const [depth, row] of rows.entries()) for (const frame of row) drawFrame(frame, depth * ROW);
};
/** Frames a node for the keyboard, on paper of its own so that it is visible on every color.
 * @param {CanvasRenderingContext2D} g @param {Frame[][]} rows @param {number} node */
export const drawFocus = (g, rows, node) => {
  for (const [depth, row] of rows.entries()) {
    const frame = row.find((one) => one.node === node);
    if (!frame) continue;
    g.strokeStyle = cssColor("--paper");
    g.lineWidth = 4;
    g.strokeRect(frame.x + 1.5, depth * ROW + 1.5, Math.max(2, frame.w - 4), ROW - 4);
    g.strokeStyle = cssColor("--focus");
    g.lineWidth = 2;
    g.strokeRect(frame.x + 1, depth * ROW + 1, Math.max(2, frame.w - 3), ROW - 3);
    return;
  }
};
