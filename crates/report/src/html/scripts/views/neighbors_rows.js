// @ts-check
// Callers or callees of a function as rows: the heaviest, and the others as one.
import { NONE, OTHERS } from "../core/codes.js";
import { fileOf, hasCalls, nameOf, samplingError } from "../core/data.js";
import { amount, grouped } from "../core/format.js";

/** @typedef {Arc & { f: number, label?: string }} Neighbor */
/** @typedef {"elapsed" | "calls"} ArcWeight */

const MOST = 12;

/** Returns the heaviest arcs to or from one side; the others are merged.
 * @param {Arc[]} arcs @param {"from" | "to"} end @param {ArcWeight} weight @returns {Neighbor[]} */
export const neighborsOf = (arcs, end, weight) => {
  const sorted = [...arcs].sort((a, b) => b[weight] - a[weight] || b.calls - a.calls);
  const count = sorted.length > MOST ? MOST - 1 : MOST, rest = sorted.slice(count);
  /** @type {Neighbor[]} */
  const rows = sorted.slice(0, count).map((arc) => ({ ...arc, f: arc[end] }));
  if (rest.length === 0) return rows;
  /** @param {"calls" | "ended" | "elapsed"} key */
  const sum = (key) => rest.reduce((all, arc) => all + arc[key], 0);
  const label = rest.length + " others", of = { from: OTHERS, to: OTHERS, f: OTHERS };
  rows.push({ ...of, label, how: "call", calls: sum("calls"), ended: sum("ended"), elapsed: sum("elapsed") });
  return rows;
};
/** @param {Neighbor} row */
export const labelOf = (row) => {
  if (row.label) return row.label;
  if (row.f !== NONE) return nameOf(row.f);
  return row.how === "call" ? "(beginning of the trace)" : "(nothing: " + row.how + ")";
};
/** @param {Neighbor} row */
export const tooltipOf = (row) => {
  const elapsed = amount(row.elapsed), each = amount(row.ended ? row.elapsed / row.ended : 0);
  const facts = hasCalls()
    ? `${grouped(row.calls)} calls (${row.how}), ${elapsed} elapsed, ${each} each`
    : `${elapsed} ± ${amount(samplingError(row.elapsed))} on the stack (${row.how})`;
  return [labelOf(row), facts, fileOf(row.f)].join("\n");
};
