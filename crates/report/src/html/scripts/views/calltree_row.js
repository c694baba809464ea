// @ts-check
// Rows of the call tree's table: headings, figures of a node, and its place for screen readers.
import { SMALLER } from "../core/codes.js";
import { formatChange, formatCount, percent, signed, verdict } from "../core/format.js";
import { colorOf, swatch } from "../ui/color.js";
import { make } from "../ui/dom.js";
import { state, weight } from "../ui/state.js";
import { entryOf, isDifference, titleOf } from "../ui/trees.js";
import { matcher } from "./search.js";

/** Row of a node; `position` counts from 1 among the `size` children of its parent.
 * @typedef {{
 *   node: number, depth: number, hasKids: boolean, isOpen: boolean, position: number, size: number,
 * }} RowPlace */

const MOST_INDENTED = 60;

const heads = () => {
  const { title } = weight();
  if (isDifference()) return ["function", "first", "second", "difference", ""];
  if (state.mode === "up") return ["function", title, "share"];
  return ["function", title + ", with callees", "share", "itself", "calls"];
};
/** @param {string} text */
const cell = (text, cls = "") => make("td", { role: "gridcell", class: cls }, text);
/** @param {ShownTree} tree @param {number} node */
const cells = (tree, node) => {
  const { column, bare } = weight(), all = tree.all[column][node], whole = tree.totals[column];
  if (isDifference()) {
    const b = tree.b[column][node], a = all - b, word = verdict(b - a);
    return [cell(bare(a)), cell(bare(b)), cell(signed(b - a, bare), word), cell(formatChange(a, b), word)];
  }
  const part = cell(percent(all, whole), "part");
  part.style.setProperty("--part", (100 * all / (whole || 1)).toFixed(1) + "%");
  if (state.mode === "up") return [cell(bare(all)), part];
  const hasCount = tree.f[node] !== SMALLER && tree.calls[node] > 0;
  const calls = hasCount ? formatCount(tree.calls[node]) : "";
  return [cell(bare(all)), part, cell(bare(tree.own[column][node])), cell(calls)];
};
export const headRow = () => {
  const columns = heads().map((head, at) =>
    make("th", { scope: "col", role: "columnheader", class: at ? "" : "first" }, head));
  return make("tr", { role: "row" }, ...columns);
};
/** @param {number} f */
export const rowClass = (f) => (f >= 0 && f === state.fn ? "chosen" : "");
/** @param {ShownTree} tree @param {RowPlace} place */
export const nodeRow = (tree, { node, depth, hasKids, isOpen, position, size }) => {
  const f = tree.f[node], isFound = matcher()?.(f), sign = hasKids ? (isOpen ? "▾" : "▸") : "";
  const twist = make("span", { class: "twist", "aria-hidden": "true" }, sign);
  const name = make("span", { class: isFound ? "name found" : "name" }, titleOf(tree, node));
  const color = swatch(colorOf(f, entryOf(tree, node)));
  const head = make("th", { scope: "row", role: "rowheader" }, twist, color, name);
  head.style.paddingLeft = (0.4 + Math.min(depth, MOST_INDENTED) * 0.85) + "rem";
  const level = {
    "aria-level": String(depth + 1), "aria-posinset": String(position), "aria-setsize": String(size),
  };
  const tr = make("tr", { role: "row", ...level, tabindex: "-1" }, head, ...cells(tree, node));
  if (hasKids) tr.setAttribute("aria-expanded", String(isOpen));
  tr.className = rowClass(f);
  return tr;
};
