// @ts-check
// Figures with three significant digits and a unit. Exact profiles count instructions, others time:
// `amount` writes either, `withUnit` adds the name of the quantity.
import { data } from "./data.js";

const NS_PER_US = 1e3;
export const NS_PER_MS = 1e6;
const NS_PER_S = 1e9;
const KILO = 1e3;
const MEGA = 1e6;
// From here on a figure would be rounded to the next digit, or to 1,000 of its unit.
const ROUNDS_TO_10 = 9.995;
const ROUNDS_TO_100 = 99.95;
const ROUNDS_TO_1000 = 999.5;
const ROUNDS_TO_10000 = 9999.5;
const MINUS = "\u2212";
const NARROW_SPACE = "\u202f";

/** @param {number} n */
export const grouped = (n) => Math.round(n).toLocaleString("en-US");
/** @param {number} x */
const threeDigits = (x) => {
  const size = Math.abs(x);
  return x.toFixed(size >= ROUNDS_TO_100 ? 0 : size >= ROUNDS_TO_10 ? 1 : 2);
};
/** @param {number} ns */
export const formatTime = (ns) => {
  if (Math.abs(ns) < ROUNDS_TO_1000) return (Number.isInteger(ns) ? ns : threeDigits(ns)) + " ns";
  for (const [size, unit] of /** @type {[number, string][]} */ ([[NS_PER_US, "µs"], [NS_PER_MS, "ms"]])) {
    if (Math.abs(ns) / size < ROUNDS_TO_1000) return threeDigits(ns / size) + " " + unit;
  }
  return threeDigits(ns / NS_PER_S) + " s";
};
/** @param {number} n */
export const formatCount = (n) => {
  const size = Math.abs(n);
  if (size < ROUNDS_TO_10000) return Number.isInteger(n) ? grouped(n) : threeDigits(n);
  if (size < ROUNDS_TO_1000 * KILO) return threeDigits(n / KILO) + " k";
  return (size < ROUNDS_TO_1000 * MEGA ? threeDigits(n / MEGA) : grouped(n / MEGA)) + " M";
};
/** @param {number} n */
export const amount = (n) => (data.exact ? formatCount(n) : formatTime(n));
/** @param {number} n */
export const withUnit = (n) =>
  data.exact ? formatCount(n) + (n === 1 ? " instruction" : " instructions") : formatTime(n);
// Returns the counted quantity for a column head.
export const unitName = () => (data.exact ? "instructions" : "time");
/** @param {number} part @param {number} whole */
export const percent = (part, whole) => {
  if (!(whole > 0)) return "0 %";
  const share = 100 * part / whole;
  if (share >= ROUNDS_TO_100) return share.toFixed(0) + " %";
  if (share >= 10) return share.toFixed(1) + " %";
  return (share >= 0.01 ? share.toFixed(2) : share > 0 ? "<0.01" : "0") + " %";
};
/** Formats a difference with its sign; less is better.
 * @param {number} n @param {(n: number) => string} write */
export const signed = (n, write) => (n > 0 ? "+" : n < 0 ? MINUS : "±") + write(Math.abs(n));
/** @param {number} n */
export const verdict = (n) => (n < 0 ? "better" : n > 0 ? "worse" : "same");
/** @param {number} a @param {number} b */
export const formatChange = (a, b) => {
  if (a === b) return "±0 %";
  if (!(a > 0)) return "new";
  if (!(b > 0)) return "gone";
  const change = 100 * (b / a - 1), size = Math.abs(change);
  const digits = size >= ROUNDS_TO_100 ? size.toFixed(0) : size < 0.01 ? "<0.01" : threeDigits(size);
  return (change > 0 ? "+" : MINUS) + digits + " %";
};
/** Formats a moment of the profiled machine's clock in milliseconds since the first region began:
 * 3,214.567 890 ms.
 * @param {number} time */
export const moment = (time) => {
  const ns = Math.round(time) - data.origin, digits = String(Math.abs(ns)).padStart(7, "0");
  const whole = Number(digits.slice(0, -6)).toLocaleString("en-US");
  return (ns < 0 ? MINUS : "") + whole + "." + digits.slice(-6, -3) + NARROW_SPACE + digits.slice(-3) + " ms";
};
/** Returns as many characters of a name as fit; empty if none does.
 * @param {string} text @param {number} letters */
export const cutText = (text, letters) =>
  text.length <= letters ? text : letters < 4 ? "" : text.slice(0, letters - 1) + "…";
