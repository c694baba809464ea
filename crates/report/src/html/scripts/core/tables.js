// @ts-check
// Tables of what is shown: functions, callers and callees, histograms.
import { NONE } from "./codes.js";
import { data } from "./data.js";

/** @param {number} f @returns {FunctionRow} */
const emptyRow = (f) => ({ f, calls: 0, ended: 0, net: 0, elapsed: 0, slowest: -1, at: 0 });
/** @template K, V @param {Map<K, V>} map @param {K} key @param {() => V} make @returns {V} */
const entry = (map, key, make) => {
  let found = map.get(key);
  if (found === undefined) map.set(key, found = make());
  return found;
};
/** @param {Map<string, Arc>} arcs @param {number} from @param {number} to @param {number} how */
const arcEntry = (arcs, from, to, how) => {
  const make = () => ({ from, to, how: data.hows[how], calls: 0, ended: 0, elapsed: 0 });
  return entry(arcs, from + " " + to + " " + how, make);
};
/** Returns arcs by callee, and by caller.
 * @param {Iterable<Arc>} arcs @returns {ArcTables} */
const arcTables = (arcs) => {
  /** @type {ArcTables} */
  const tables = { callers: new Map(), callees: new Map() };
  for (const arc of arcs) {
    entry(tables.callers, arc.to, () => []).push(arc);
    entry(tables.callees, arc.from, () => []).push(arc);
  }
  return tables;
};
/** Adds up several groups.
 * @param {Group[]} groups @returns {Tables} */
export const tablesOf = (groups) => {
  /** @type {Map<number, FunctionRow>} */
  const functions = new Map();
  /** @type {Map<string, Arc>} */
  const arcs = new Map();
  /** @type {Map<number, HistogramRow[]>} */
  const histograms = new Map();
  for (const { functions: t, arcs: a, histograms: h } of groups) {
    for (let i = 0; i < t.f.length; i++) {
      const row = entry(functions, t.f[i], () => emptyRow(t.f[i]));
      const isFirst = t.slowest[i] === row.slowest && t.at[i] < row.at;
      if (t.ended[i] > 0 && (t.slowest[i] > row.slowest || isFirst)) {
        row.slowest = t.slowest[i];
        row.at = t.at[i];
      }
      row.calls += t.calls[i];
      row.ended += t.ended[i];
      row.net += t.net[i];
      row.elapsed += t.elapsed[i];
    }
    for (let i = 0; i < a.from.length; i++) {
      const arc = arcEntry(arcs, a.from[i], a.to[i], a.h[i]);
      arc.calls += a.calls[i];
      arc.ended += a.ended[i];
      arc.elapsed += a.elapsed[i];
    }
    for (let i = 0; i < h.f.length; i++) {
      entry(histograms, h.f[i], () => []).push({ caller: h.c[i], bucket: h.b[i], count: h.n[i] });
    }
  }
  return { functions, histograms, ...arcTables(arcs.values()) };
};
/** Computes functions, callers and callees from the trees alone, when operations have changed them.
 * @param {RawTree[]} raws */
export const tablesFrom = (raws) => {
  /** @type {Map<number, FunctionRow>} */
  const functions = new Map();
  /** @type {Map<string, Arc>} */
  const arcs = new Map();
  for (const tree of raws) {
    for (let at = 0; at < tree.n; at++) {
      const f = tree.f[at];
      if (f < 0) continue;
      const row = entry(functions, f, () => ({ ...emptyRow(f), derived: true }));
      row.calls += tree.calls[at];
      row.net += tree.own[0][at];
      // Recursion counts once.
      let above = tree.up[at];
      while (above >= 0 && tree.f[above] !== f) above = tree.up[above];
      if (above < 0) row.elapsed += tree.sums[0][at];
      const parent = tree.up[at];
      const arc = arcEntry(arcs, parent >= 0 && tree.f[parent] >= 0 ? tree.f[parent] : NONE, f, tree.how[at]);
      arc.calls += tree.calls[at];
      arc.elapsed += tree.sums[0][at];
    }
  }
  return { functions, ...arcTables(arcs.values()) };
};
