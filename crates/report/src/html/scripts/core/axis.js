// @ts-check
// Labels of the timeline's axis.
import { NS_PER_MS } from "./format.js";

const DIGITS_OF_NS = Math.log10(NS_PER_MS);

/** Returns a round step, so that labels have room.
 * @param {number} length @param {number} labels */
export const axisStep = (length, labels) => {
  const rough = length / labels, size = 10 ** Math.floor(Math.log10(rough));
  return Math.max(1, [1, 2, 5, 10].map((n) => n * size).find((step) => step >= rough) ?? size * 10);
};
/** Writes a time in milliseconds, with as many digits as steps need.
 * @param {number} ns @param {number} step */
export const axisLabel = (ns, step) => {
  const digits = Math.max(0, Math.ceil(DIGITS_OF_NS - Math.log10(step)));
  const format = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return (ns / NS_PER_MS).toLocaleString("en-US", format) + " ms";
};
