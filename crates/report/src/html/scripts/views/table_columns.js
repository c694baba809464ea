// @ts-check
// Columns of the table of functions, of one profile and of two.
import { hasCalls, isKernel, isSampled, samplingError } from "../core/data.js";
import { amount, formatChange, formatCount, percent, signed } from "../core/format.js";
import { state } from "../ui/state.js";
import { shown } from "../ui/view.js";

/** @typedef {FunctionRow & { net2: number, calls2: number, elapsed2: number }} TableRow */
/** `text`: sorted by the function's name; `size`: by size without sign; `calls`, `sampled`: only if
 * the profile has them.
 * @typedef {{
 *   id: string, head: string, key: (row: TableRow) => number, show: (value: number, row: TableRow)
 * => string,
 *   title?: string, text?: boolean, bar?: boolean, verdict?: boolean, size?: boolean, calls?:
 * boolean, sampled?: boolean,
 * }} Column */

/** @param {(n: number) => string} write */
const known = (write) => (/** @type {number} */ n) => (Number.isNaN(n) ? "–" : write(n));
/** @param {TableRow} row */
const change = (row) => (row.net ? row.net2 / row.net : row.net2 ? Infinity : 1);
/** @type {Column} */
const NAME = { id: "name", head: "function", key: (row) => row.f, show: () => "", text: true };
/** @type {Column[]} */
const ONE = [
  NAME,
  { id: "self", head: "self", key: (row) => row.net, show: amount, title: "without callees" },
  {
    id: "share", head: "% self", key: (row) => row.net, show: (net) => percent(net, shown.view.about.busy),
    bar: true,
  },
  {
    id: "kernel", head: "% kernel", key: (row) => (isKernel(row.f) ? row.net : NaN),
    show: known((net) => percent(net, shown.view.about.busy - shown.view.about.user)),
    title: "without callees, of the kernel's time",
  },
  {
    id: "error", head: "±", key: (row) => samplingError(row.net), show: amount, sampled: true,
    title: "standard error of the function's own time (√n samples)",
  },
  {
    id: "calls", head: "calls", key: (row) => row.calls, show: formatCount, title: "calls that were made",
    calls: true,
  },
  {
    id: "ended", head: "ended", key: (row) => (row.derived ? NaN : row.ended), show: known(formatCount),
    calls: true,
    title: "calls that ended",
  },
  { id: "total", head: "in all", key: (row) => row.elapsed, show: amount, title: "with callees" },
  {
    id: "average", head: "average", key: (row) => (row.ended ? row.elapsed / row.ended : NaN),
    show: known(amount),
    title: "with callees, per call that ended", calls: true,
  },
  {
    id: "slowest", head: "slowest", key: (row) => (row.slowest < 0 ? NaN : row.slowest), show: known(amount),
    title: "the one call with the most, with callees", calls: true,
  },
];
/** @type {Column[]} */
const TWO = [
  NAME,
  { id: "self", head: "self, first", key: (row) => row.net, show: amount },
  { id: "self2", head: "second", key: (row) => row.net2, show: amount },
  {
    id: "difference", head: "difference", key: (row) => row.net2 - row.net, show: (n) => signed(n, amount),
    verdict: true,
    size: true,
  },
  {
    id: "change", head: "change", key: change, show: (_, row) => formatChange(row.net, row.net2),
    verdict: true,
  },
  { id: "calls", head: "calls, first", key: (row) => row.calls, show: formatCount, calls: true },
  { id: "calls2", head: "second", key: (row) => row.calls2, show: formatCount, calls: true },
  { id: "total", head: "in all, first", key: (row) => row.elapsed, show: amount },
  { id: "total2", head: "second", key: (row) => row.elapsed2, show: amount },
];
export const isPair = () => state.profile === "diff" || state.profile === "both";
export const shownColumns = () =>
  (isPair() ? TWO : ONE).filter((column) => (column.sampled ? isSampled() : hasCalls() || !column.calls));
