// @ts-check
// Functions of the view, sorted and filtered; as many rows as are readable.
import { fileOf, moduleOf, nameOf } from "../core/data.js";
import { amount, formatChange, grouped, percent, unitName, verdict } from "../core/format.js";
import { colorOf, swatch } from "../ui/color.js";
import { byId, closest, make } from "../ui/dom.js";
import { on, set, state } from "../ui/state.js";
import { shown } from "../ui/view.js";
import { afterwards, soon } from "../ui/work.js";
import { isPair, shownColumns } from "./table_columns.js";

/** @typedef {import("./table_columns.js").Column} Column */
/** @typedef {import("./table_columns.js").TableRow} TableRow */

const MOST_ROWS = 200;

/** @returns {TableRow[]} */
const rowsNow = () => {
  const second = { net2: 0, calls2: 0, elapsed2: 0 };
  if (!isPair()) return [...shown.view.functions.values()].map((row) => ({ ...row, ...second }));
  const [a, b] = shown.sides.map((side) => side.functions);
  return [...new Set([...a.keys(), ...b.keys()])].map((f) => {
    const x = a.get(f), y = b.get(f);
    return {
      f, ended: 0, slowest: -1, at: 0, net: x?.net ?? 0, calls: x?.calls ?? 0, elapsed: x?.elapsed ?? 0,
      net2: y?.net ?? 0, calls2: y?.calls ?? 0, elapsed2: y?.elapsed ?? 0,
    };
  });
};
/** Returns the sort order: a column, and whether it is ascending.
 * @param {Column[]} columns */
const orderOf = (columns) => {
  const [id, direction] = state.sort.split("."), standard = isPair() ? "difference" : "self";
  const column = columns.find((c) => c.id === id) || columns.find((c) => c.id === standard) || columns[0];
  const isChosen = column.id === id && state.sort !== "";
  return { column, up: isChosen ? direction === "up" : Boolean(column.text) };
};
/** Compares rows; unknown values come last in both orders.
 * @param {Column} column @param {boolean} up */
const comparison = (column, up) => {
  /** @param {TableRow} row */
  const key = (row) => (column.size ? Math.abs(column.key(row)) : column.key(row));
  return (/** @type {TableRow} */ a, /** @type {TableRow} */ b) => {
    let order = 0;
    if (column.text) order = nameOf(a.f).localeCompare(nameOf(b.f));
    else {
      const x = key(a), y = key(b);
      if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
      order = x === y ? 0 : x - y;
    }
    return (up ? order : -order) || a.f - b.f;
  };
};
/** @param {Column[]} columns @param {{ column: Column, up: boolean }} order */
const header = (columns, order) => make("tr", {}, ...columns.map((column, at) => {
  const button = make("button", { type: "button", title: column.title || "sort by this" }, column.head);
  button.dataset.column = column.id;
  const th = make("th", { scope: "col", class: at ? "" : "first" }, button);
  if (column === order.column) th.setAttribute("aria-sort", order.up ? "ascending" : "descending");
  return th;
}));
/** @param {TableRow} row @param {Column[]} columns @param {number} largest */
const line = (row, columns, largest) => {
  const title = moduleOf(row.f) || fileOf(row.f) || "";
  const button = make("button", { type: "button", title }, swatch(colorOf(row.f, "")), nameOf(row.f));
  const cells = columns.slice(1).map((column) => {
    const cell = make("td", {}, column.show(column.key(row), row));
    if (column.verdict) cell.className = verdict(row.net2 - row.net);
    if (column.bar) {
      cell.style.setProperty("--part", (100 * row.net / largest).toFixed(1) + "%");
      cell.className = "part";
    }
    return cell;
  });
  const tr = make("tr", {}, make("th", { scope: "row", class: "first" }, button), ...cells);
  tr.dataset.f = String(row.f);
  if (row.f === state.fn) tr.className = "chosen";
  return tr;
};
/** @param {TableRow[]} rows */
const summary = (rows) => {
  const net = rows.reduce((sum, row) => sum + row.net, 0);
  const rest = rows.length > MOST_ROWS ? "; the first " + MOST_ROWS + " are listed" : "";
  if (isPair()) {
    const second = rows.reduce((sum, row) => sum + row.net2, 0);
    const both = `self ${amount(net)} → ${amount(second)}, ${formatChange(net, second)}`;
    return `${grouped(rows.length)} functions, ${both}${rest}`;
  }
  const count = grouped(rows.length) + (rows.length === 1 ? " function, " : " functions, ");
  return count + percent(net, shown.view.about.busy) + " of busy " + unitName() + rest;
};
export const startTable = () => {
  const table = byId("flat", HTMLTableElement), body = table.tBodies[0];
  const filter = byId("filter", HTMLInputElement);
  const head = /** @type {HTMLTableSectionElement} */ (table.tHead);
  head.addEventListener("click", (event) => {
    const button = /** @type {HTMLButtonElement | null} */ (closest(event, "button"));
    if (!button) return;
    const { column, up } = orderOf(shownColumns()), id = button.dataset.column;
    const ascending = column.id === id ? !up : id === "name";
    set({ sort: id + "." + (ascending ? "up" : "down") });
    /** @type {HTMLButtonElement | null} */ (head.querySelector(`[data-column="${id}"]`))?.focus();
  });
  const draw = () => {
    const columns = shownColumns(), order = orderOf(columns), wanted = filter.value.trim().toLowerCase();
    head.replaceChildren(header(columns, order));
    /** @param {TableRow} row */
    const isHit = ({ f }) => [nameOf(f), fileOf(f), moduleOf(f)].some(
      (text) => text.toLowerCase().includes(wanted),
    );
    const rows = rowsNow().filter(isHit).sort(comparison(order.column, order.up));
    byId("count").textContent = summary(rows);
    const listed = rows.slice(0, MOST_ROWS), largest = Math.max(1, ...listed.map((row) => row.net));
    body.replaceChildren(...listed.map((row) => line(row, columns, largest)));
  };
  body.addEventListener("click", (event) => {
    const tr = /** @type {HTMLTableRowElement | null} */ (closest(event, "tr"));
    if (tr) set({ fn: Number(tr.dataset.f) });
  });
  filter.addEventListener("input", soon(draw));
  on(["view"], afterwards(draw));
  on(["sort"], draw);
  on(["fn"], () => {
    for (const tr of body.rows) tr.className = Number(tr.dataset.f) === state.fn ? "chosen" : "";
  });
  draw();
};
