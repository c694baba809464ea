// @ts-check
// Canvas in physical pixels, sharp on every screen.
import { onTheme } from "./theme.js";

export const MONOSPACE =
  "11.5px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace";
export const DARK_ALPHA = 0.86;

/** @param {HTMLCanvasElement} canvas */
const contextOf = (canvas) => {
  const context = canvas.getContext("2d");
  if (!context) throw new Error("this browser cannot draw");
  return context;
};
/** Sets the height, clears the canvas, and returns its context in pixels of the style.
 * @param {HTMLCanvasElement} canvas @param {number} height */
export const fitCanvas = (canvas, height) => {
  const width = canvas.clientWidth || Number(canvas.parentElement?.clientWidth);
  const ratio = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  canvas.style.height = height + "px";
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = contextOf(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.textBaseline = "middle";
  return context;
};
let width = 0;
// Returns the width of a letter in MONOSPACE.
export const letterWidth = () => {
  if (width === 0) {
    const context = contextOf(document.createElement("canvas"));
    context.font = MONOSPACE;
    width = context.measureText("mmmmmmmmmm").width / 10;
  }
  return width;
};
/** Creates a small canvas as a pattern.
 * @param {CanvasRenderingContext2D} g @param {number} size
 * @param {(tile: CanvasRenderingContext2D) => void} draw */
export const patternOf = (g, size, draw) => {
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  draw(contextOf(tile));
  return g.createPattern(tile, "repeat");
};
/** Redraws when the width or the theme changes.
 * @param {Element} element @param {() => void} act */
export const redrawWith = (element, act) => {
  let last = 0;
  new ResizeObserver(() => {
    if (element.clientWidth === last) return;
    last = element.clientWidth;
    act();
  }).observe(element);
  onTheme(act);
};
