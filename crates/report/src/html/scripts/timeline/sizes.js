// @ts-check
// Sizes in pixels, colors and fonts of the timeline.
import { SPECIAL } from "../ui/color.js";

export const SMALL_SCREEN = 700;
export const LEFT = 142;
export const LEFT_ON_SMALL = 108;
export const AXIS = 22;
export const REGION = 17;
/** Top of the first lane. */
export const TOP = AXIS + REGION + 4;
/** Height of a lane, of a row of calls below it, and of the gap to the next. */
export const BAND = 20;
export const CALL = 16;
export const GAP = 7;
/** Place of lanes that are not shown. */
export const OFF_SCREEN = -9999;
const NAME_SIZE = 12;
const SMALL_SIZE = 11;
export const NAME_FONT = NAME_SIZE + "px system-ui, sans-serif";
export const SMALL_FONT = SMALL_SIZE + "px system-ui, sans-serif";
/** Width of a text in the font of names, by its width in the small font. */
export const NAME_PER_SMALL = NAME_SIZE / SMALL_SIZE;
export const COLORS = {
  kernel: "#77aadd", user: SPECIAL.user, interrupt: SPECIAL.interrupt, idle: "#aeb4bb", halted: "#aeb4bb",
};
// Shares below are not drawn; from it on, at least a hairline is, so that rare events stay visible.
const VISIBLE = 0.01;
/** Rounds a height to half a pixel.
 * @param {number} height */
export const barHeight = (height) => (height > VISIBLE ? Math.max(1, Math.round(height * 2) / 2) : 0);
/** Single stretches can be told apart: bins, which are averages, are paler. */
export const WIDE_BIN = 3;
export const PALE = 0.5;

/** @param {TimelineView} view */
export const plotWidth = (view) => Math.max(50, view.width - view.left);
/** Returns the place of a position in pixels.
 * @param {TimelineView} view @param {number} u */
export const xOf = (view, u) => view.left + (u - view.u0) / (view.u1 - view.u0) * plotWidth(view);
/** Returns the visible part of a stretch in pixels.
 * @param {TimelineView} view @param {{ u0: number, u1: number }} of */
export const visible = (view, { u0, u1 }) => {
  const a = Math.max(view.left, xOf(view, u0)), b = Math.min(view.width, xOf(view, u1));
  return { a, b, w: b - a };
};
/** Width of a filled stretch; a gap after it, if it is wide enough.
 * @param {number} w */
export const filledWidth = (w) => Math.max(1, w - (w > 4 ? 0.5 : 0));
/** Checks whether a stretch is in view.
 * @param {TimelineView} view @param {{ u0: number, u1: number }} of */
export const isInView = (view, { u0, u1 }) => u1 >= view.u0 && u0 <= view.u1;
