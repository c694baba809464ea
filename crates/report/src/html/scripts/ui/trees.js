// @ts-check
// Trees on display: one, or one for each of two profiles side by side. Pictures and the table share
// them.
import { SMALLER, THREAD } from "../core/codes.js";
import { data, fileOf, moduleOf, nameOf } from "../core/data.js";
import { amount, formatChange, grouped, percent, signed, unitName } from "../core/format.js";
import { treeOf } from "../core/tree.js";
import { addOperation, fire, on, set, state, weight } from "./state.js";
import { shown } from "./view.js";

/** @type {ShownTree[]} */
let trees = [];
export const shownTrees = () => trees;
const compute = () => {
  const { profile, mode, fn } = state, { sides } = shown;
  if (profile === "both") return sides.map((side) => treeOf(side.raws, mode, fn));
  if (profile !== "diff") return [treeOf(shown.view.raws, mode, fn)];
  const raws = sides.flatMap((side) => side.raws);
  return [treeOf(raws, mode, fn, sides.flatMap((side, at) => side.raws.map(() => at)))];
};
const renew = () => {
  trees = compute();
  fire(["trees"]);
};
export const startTrees = () => {
  on(["view", "mode"], renew);
  on(["fn"], () => { if (state.mode === "from" || state.mode === "to") renew(); });
  trees = compute();
};
export const isDifference = () => state.profile === "diff";
/** @param {ShownTree} tree @param {number} node */
export const entryOf = (tree, node) => data.hows[tree.how[node]];
/** @param {ShownTree} tree @param {number} node */
export const titleOf = (tree, node) => {
  const f = tree.f[node], how = entryOf(tree, node);
  if (f === SMALLER) return grouped(tree.calls[node]) + " smaller";
  // The tooltip has the kind of entry; only entries without a caller are marked here.
  return (how === "interrupt" || how === "exception" ? how + " " : "") + nameOf(f);
};
/** @param {ShownTree} tree @param {number} node @returns {Fact[]} */
const differenceFacts = (tree, node) => {
  const { column, unit } = weight(), b = tree.b[column][node], a = tree.all[column][node] - b;
  const change = signed(b - a, unit) + ", " + formatChange(a, b);
  /** @type {Fact[]} */
  const facts = [["first", unit(a)], ["second", unit(b)], ["difference", change]];
  const calls = tree.calls[node], callsB = tree.callsB[node];
  if (tree.f[node] !== SMALLER && calls > 0) {
    facts.push(["calls", grouped(calls - callsB) + " and " + grouped(callsB)]);
  }
  return facts;
};
/** @param {ShownTree} tree @param {number} node @returns {Fact[]} */
const frameFacts = (tree, node) => {
  const { column, unit } = weight(), all = tree.all[column][node], own = tree.own[column][node];
  const calls = tree.calls[node], above = tree.parent[node];
  /** @param {number} part */
  const share = (part) => unit(part) + ", " + percent(part, tree.totals[column]);
  if (tree.kind === "up") return [[above < 0 ? "itself" : "on behalf of it", share(all)]];
  /** @type {Fact[]} */
  const facts = [["with callees", share(all)], ["itself", share(own)]];
  if (calls > 0) facts.unshift(["calls", grouped(calls)]);
  const time = amount(tree.all[0][node]) + ", itself " + amount(tree.own[0][node]);
  if (column !== 0) facts.push([unitName(), time]);
  if (above >= 0) facts.push(["of its caller", percent(all, tree.all[column][above])]);
  if (calls > 0) facts.push(["per call", unit(all / calls)]);
  return facts;
};
/** Describes a node in lines of name and value.
 * @param {ShownTree} tree @param {number} node @returns {Fact[]} */
export const factsOf = (tree, node) => {
  const f = tree.f[node], how = entryOf(tree, node), { column, unit } = weight();
  const all = tree.all[column][node];
  if (f === SMALLER && !isDifference()) {
    const paths = grouped(tree.calls[node]) + ", each too small to be told apart";
    return [["paths", paths], ["together", unit(all) + ", " + percent(all, tree.totals[column])]];
  }
  const facts = isDifference() ? differenceFacts(tree, node) : frameFacts(tree, node);
  if (f >= 0 && tree.kind !== "up") facts.push(["came to run by", how === "jump" ? "jump (tail call)" : how]);
  const origin = moduleOf(f) || fileOf(f);
  if (origin) facts.push(["source", origin]);
  return facts;
};
/** @param {ShownTree} tree @param {number} node */
export const describe = (tree, node) =>
  titleOf(tree, node) + ": " + factsOf(tree, node).map((fact) => fact.join(" ")).join("; ");
/** @type {Record<string, string>} */
const KEYS = { f: "focus", m: "merge", x: "drop" };
/** Operates on a node's function, if the key is one of those for it.
 * @param {string} key @param {number} f */
export const operateByKey = (key, f) => {
  if (f < 0 && f > THREAD) return;
  if (KEYS[key]) addOperation(KEYS[key], f);
  else if (key === "c" && f >= 0) set({ fn: f });
};
