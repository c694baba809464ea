// @ts-check
// Scales of the histogram: callers and their places, stacks of counts by bucket, lengths of bars.
import { OTHERS } from "../core/codes.js";

/** Figures of a histogram; `order` has the callers that are told apart.
 * @typedef {{
 *   order: number[], callers: Map<number, number>, low: number, high: number, stacks: number[][],
 *   sums: number[], total: number, most: number,
 * }} Stacks */

// Bars of few calls stay visible on a logarithmic scale.
const LOG_OFFSET = 0.3;

/** @param {HistogramRow[]} rows @param {number} most callers @param {boolean} isByCaller
 * @returns {Stacks} */
export const stacksOf = (rows, most, isByCaller) => {
  /** @type {Map<number, number>} */
  const callers = new Map();
  for (const r of rows) callers.set(r.caller, (callers.get(r.caller) || 0) + r.count);
  /** @param {number} caller */
  const calls = (caller) => callers.get(caller) ?? 0;
  // The most frequent callers differ between regions; here are the most frequent of all.
  const named = [...callers.keys()].filter((c) => c !== OTHERS);
  const order = named.sort((a, b) => calls(b) - calls(a)).slice(0, most);
  /** @param {number} caller */
  const place = (caller) => (order.includes(caller) ? order.indexOf(caller) : order.length);
  const buckets = rows.map((r) => r.bucket);
  const low = Math.max(0, Math.min(...buckets) - 1), high = Math.max(...buckets) + 1;
  const stacks = Array.from({ length: high - low + 1 }, () => new Array(order.length + 1).fill(0));
  for (const r of rows) stacks[r.bucket - low][isByCaller ? place(r.caller) : 0] += r.count;
  const sums = stacks.map((stack) => stack.reduce((a, b) => a + b, 0));
  const total = sums.reduce((a, b) => a + b, 0);
  return { order, callers, low, high, stacks, sums, total, most: Math.max(...sums) };
};
/** Returns the length of a bar, and the counts of the lines behind the bars.
 * @param {number} most @param {number} height @param {boolean} isLog */
export const levelsOf = (most, height, isLog) => {
  /** @param {number} n */
  const log = (n) => (n > 0 ? Math.log10(n) + LOG_OFFSET : 0) / (Math.log10(most) + LOG_OFFSET);
  /** @param {number} n */
  const level = (n) => (isLog ? log(n) : n / most) * height;
  const powers = Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, n) => 10 ** n);
  return { level, ticks: isLog ? powers : [most / 2, most] };
};
/** Returns the index of the bucket in which a percentile lies; -1 if there are too few calls to
 * tell.
 * @param {Stacks} stacks @param {number} part */
export const percentile = ({ sums, total }, part) => {
  const isMedian = part === 0.5;
  if (!isMedian && (total < 20 || total * (1 - part) < 1)) return -1;
  let seen = 0, at = 0;
  while (at < sums.length - 1 && seen + sums[at] < part * total) seen += sums[at++];
  return at;
};
