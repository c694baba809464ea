// @ts-check
// Single calls below their lane.
import { cutText } from "../core/format.js";
import { nameOf } from "../core/data.js";
import { letterWidth, MONOSPACE } from "../ui/canvas.js";
import { colorOf, DARK_TEXT } from "../ui/color.js";
import { state } from "../ui/state.js";
import { cssColor } from "../ui/theme.js";
import { isTask } from "./lanes.js";
import { BAND, CALL, isInView, visible } from "./sizes.js";

const INTERRUPT_EDGE = "#a33b12";
const THIN = 0.7;
const HAIRLINE = 0.8;
const LETTERS_OF_A_NAME = 4;
const MOST_DEPTHS = 1000;

/** @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {PlacedWindow} window */
export const drawCalls = (g, view, window) => {
  g.font = MONOSPACE;
  const letter = letterWidth();
  /** End of the last thin call by row. @type {Map<number, number>} */
  const last = new Map();
  for (const call of window.calls) {
    if (!isInView(view, call)) continue;
    const { a, b, w } = visible(view, call), row = call.lane * MOST_DEPTHS + call.depth;
    const y = view.places[call.lane].y + BAND + 1 + call.depth * CALL;
    if (w < THIN) {
      // Several calls within one pixel are one line.
      if ((last.get(row) ?? -Infinity) >= a) continue;
      last.set(row, a + HAIRLINE);
    }
    drawCall(g, call, a, y, w, letter);
    view.drawn.push({ x0: a, x1: Math.max(b, a + 1), y0: y, y1: y + CALL, call, window });
  }
  drawVeils(g, view, window);
};
/** @param {CanvasRenderingContext2D} g @param {SingleCall} call @param {number} x @param {number} y
 * @param {number} w
 * @param {number} letter */
const drawCall = (g, call, x, y, w, letter) => {
  const isInterrupt = call.how === "interrupt";
  g.fillStyle = colorOf(call.f, call.how);
  g.fillRect(x, y, Math.max(HAIRLINE, w - (w > 3 ? 1 : 0)), CALL - 1);
  if (isInterrupt && w > 2) {
    g.fillStyle = INTERRUPT_EDGE;
    g.fillRect(x, y, Math.min(3, w), CALL - 1);
  }
  if (w > LETTERS_OF_A_NAME * letter) {
    const text = cutText(nameOf(call.f), Math.floor((w - 7) / letter));
    g.fillStyle = DARK_TEXT;
    if (text) g.fillText(text, x + (isInterrupt ? 5 : 3), y + CALL / 2);
  }
  if (call.f !== state.fn) return;
  g.strokeStyle = cssColor("--ink");
  g.lineWidth = 1.5;
  g.strokeRect(x + 0.75, y + 0.75, Math.max(1, w - 2.5), CALL - 2.5);
};
/** While a thread is off the CPU, its open calls only wait. Interrupts are on the stack of the
 * thread that they hit: the one that
 * ran on that CPU before. Time in which all CPUs are halted does not belong to any thread.
 * @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {PlacedWindow} window */
const drawVeils = (g, view, window) => {
  const { lanes, cpus } = view.model;
  /** @param {LaneSlice} slice */
  const kind = (slice) => lanes[slice.lane].kind;
  /** @param {LaneSlice} slice */
  const isHalt = (slice) => cpus.length > 0 && kind(slice) === "idle";
  /** @param {LaneSlice} slice */
  const hasThread = (slice) => kind(slice) !== "interrupt" && !isHalt(slice);
  g.fillStyle = cssColor("--veil");
  for (const [lane, place] of view.places.entries()) {
    if (!place.rows || !isTask(lanes[lane])) continue;
    let from = window.u0;
    /** @param {number} to */
    const veil = (to) => {
      const { a, w } = visible(view, { u0: from, u1: to });
      if (w > 0.5) g.fillRect(a, place.y + BAND + 1, w, place.rows * CALL);
    };
    /** Lane of the thread by CPU. @type {Map<number, number>} */
    const on = new Map();
    for (const s of window.slices) if (hasThread(s) && !on.has(s.cpu)) on.set(s.cpu, s.lane);
    for (const s of window.slices) {
      if (hasThread(s)) on.set(s.cpu, s.lane);
      if (isHalt(s) || on.get(s.cpu) !== lane) continue;
      veil(s.u0);
      from = Math.max(from, s.u1);
    }
    veil(window.u1);
  }
};
