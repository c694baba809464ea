// @ts-check
// Bars of a CPU's lane: its states within each pixel, from the running sums.
import { CPU_HALTED, CPU_IDLE, CPU_WAITS } from "../core/codes.js";
import { BAND, barHeight, plotWidth } from "./sizes.js";

const BUSY_STATES = 3;
/** Kinds in the order in which they are stacked. */
export const STACKED = [0, 1, 2, CPU_IDLE, CPU_WAITS];

/** Returns heights within one pixel, from the bottom: busy time, at least a hairline; the rest is
 * idle or waiting.
 * @param {number[]} shares */
const heightsOf = (shares) => {
  const busy = shares.slice(0, BUSY_STATES).map((share) => barHeight(share * BAND));
  const rest = Math.max(0, BAND - busy.reduce((a, b) => a + b, 0));
  const idle = shares[CPU_IDLE] + shares[CPU_HALTED], waits = shares[CPU_WAITS];
  const part = idle + waits > 0 ? Math.round(idle / (idle + waits) * rest * 2) / 2 : 0;
  return [...busy, part, waits > 0 ? rest - part : 0];
};
/** Returns bars of equal heights, with their place and width.
 * @param {TimelineView} view @param {number} cpu */
export const cpuBars = (view, cpu) => {
  const { model, u0, u1, left } = view, { sums } = model.cpus[cpu], width = plotWidth(view);
  const per = (u1 - u0) / width;
  /** @type {{ x: number, w: number, heights: number[] }[]} */
  const bars = [];
  let before = sums.map((sum) => model.upTo(sum, u0));
  for (let px = 0; px < width; px++) {
    const now = sums.map((sum) => model.upTo(sum, u0 + (px + 1) * per));
    const heights = heightsOf(now.map((sum, kind) => (sum - before[kind]) / per));
    const last = bars[bars.length - 1], end = Math.min(px + 1, width);
    if (last && heights.every((h, at) => h === last.heights[at])) last.w = left + end - last.x;
    else bars.push({ x: left + px, w: end - px, heights });
    before = now;
  }
  return bars;
};
