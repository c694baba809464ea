// @ts-check
// Lanes for threads, interrupts and idle time.
import { cutText, formatTime, moment, percent } from "../core/format.js";
import { cssColor } from "../ui/theme.js";
import {
  BAND, barHeight, CALL, COLORS, filledWidth, GAP, isInView, NAME_FONT, NAME_PER_SMALL, OFF_SCREEN, plotWidth,
  SMALL_FONT,
  TOP, visible,
} from "./sizes.js";

const LETTERS = 18;
const LETTERS_ON_SMALL = 8;

/** @param {Lane} lane @param {number} user */
const colorOf = ({ kind }, user) => {
  if (kind === "interrupt") return COLORS.interrupt;
  if (kind === "idle" || kind === "task") return COLORS.idle;
  return user ? COLORS.user : COLORS.kernel;
};
/** @param {Lane} lane */
export const isTask = ({ kind }) => kind === "thread" || kind === "task";
/** Returns the time in view of a running sum.
 * @param {TimelineView} view @param {Float64Array} sum */
export const timeInView = ({ model, u0, u1 }, sum) => model.upTo(sum, u1) - model.upTo(sum, u0);
/** @param {TimelineView} view @param {number} lane */
const busyTime = (view, lane) => view.model.sums[lane].reduce((all, sum) => all + timeInView(view, sum), 0);
/** Places the lanes below the first `height` pixels; returns the height of all.
 * @param {TimelineView} view @param {number} height */
export const arrangeLanes = (view, height) => {
  /** Rows of calls by lane. @type {Map<number, number>} */
  const rows = new Map();
  for (const call of view.detailed.flatMap((window) => window.calls)) {
    if (isInView(view, call)) rows.set(call.lane, Math.max(rows.get(call.lane) || 0, call.depth + 1));
  }
  const isZoomed = view.u0 > 0 || view.u1 < view.model.length;
  let y = TOP + height;
  view.hidden = 0;
  view.places = view.model.lanes.map((lane, at) => {
    // When zoomed in, threads without activity are left out.
    if (isTask(lane) && isZoomed && !rows.has(at) && busyTime(view, at) === 0) {
      view.hidden++;
      return { y: OFF_SCREEN, rows: 0 };
    }
    const place = { y, rows: rows.get(at) || 0 };
    y += BAND + place.rows * CALL + GAP;
    return place;
  });
  return y + 2;
};
/** Draws shares of time per pixel from the running sums.
 * @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {number} lane
 * @param {number} y */
export const drawDensity = (g, view, lane, y) => {
  const { model, left, u0, u1 } = view, [kernel, user] = model.sums[lane], width = plotWidth(view);
  const colors = [0, 1].map((state) => colorOf(model.lanes[lane], state)), per = (u1 - u0) / width;
  let begin = 0, h0 = -1, h1 = -1;
  /** @param {number} end */
  const flush = (end) => {
    if (h0 > 0) {
      g.fillStyle = colors[0];
      g.fillRect(left + begin, y + BAND - h0, end - begin, h0);
    }
    if (h1 > 0) {
      g.fillStyle = colors[1];
      g.fillRect(left + begin, y + BAND - Math.max(0, h0) - h1, end - begin, h1);
    }
  };
  let k = model.upTo(kernel, u0), s = model.upTo(user, u0);
  for (let px = 0; px < width; px++) {
    const end = u0 + (px + 1) * per, k1 = model.upTo(kernel, end), s1 = model.upTo(user, end);
    const next0 = barHeight((k1 - k) / per * BAND), next1 = barHeight((s1 - s) / per * BAND);
    if (next0 !== h0 || next1 !== h1) {
      flush(px);
      begin = px;
      h0 = next0;
      h1 = next1;
    }
    k = k1;
    s = s1;
  }
  flush(width);
};
/** @param {Lane} lane @param {number} user */
const describe = (lane, user) => {
  if (lane.kind === "thread" || lane.kind === "others") return user ? "user mode" : "kernel";
  return lane.kind === "task" ? "idle task" : lane.name;
};
/** Draws single stretches of time.
 * @param {CanvasRenderingContext2D} g @param {TimelineView} view
 * @param {Placed<LaneSlice>[]} slices */
export const drawSlices = (g, view, slices) => {
  const hasCpus = view.model.cpus.length > 0;
  for (const s of slices) {
    const { a, b, w } = visible(view, s);
    if (!isInView(view, s) || w < 0.5) continue;
    const { y } = view.places[s.lane], lane = view.model.lanes[s.lane];
    g.fillStyle = colorOf(lane, s.user);
    g.fillRect(a, y, filledWidth(w), BAND);
    /** @type {Fact[]} */
    const lines = [
      ["", describe(lane, s.user)], ["from", moment(s.begin)], ["for", formatTime(s.end - s.begin)],
    ];
    if (hasCpus && lane.kind !== "idle") lines.splice(1, 0, ["on", "CPU " + s.cpu]);
    view.zones.push({ x0: a, x1: b, y0: y, y1: y + BAND, head: lane.name, lines });
  }
};
/** Draws a lane's name, and its share of the visible time.
 * @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {string} name
 * @param {string} pid
 * @param {number} ns @param {number} y */
export const drawLabel = (g, view, name, pid, ns, y) => {
  const middle = y + BAND / 2, share = percent(ns / (view.u1 - view.u0), 1);
  g.fillStyle = cssColor("--ink");
  g.font = NAME_FONT;
  g.fillText(name, 0, middle);
  g.fillStyle = cssColor("--quiet");
  g.font = SMALL_FONT;
  if (pid) g.fillText(pid, g.measureText(name).width * NAME_PER_SMALL + 4, middle);
  g.fillText(share, view.left - 8 - g.measureText(share).width, middle);
};
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view */
export const drawLabels = (g, view) => view.model.lanes.forEach((lane, at) => {
  const pid = lane.pid && !view.small ? " " + lane.pid : "";
  const letters = (view.small ? LETTERS_ON_SMALL : LETTERS) - pid.length;
  drawLabel(g, view, cutText(lane.name, letters), pid, busyTime(view, at), view.places[at].y);
});
