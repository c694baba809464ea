// @ts-check
// Callers and callees of the selected function, by total time or by calls.
import { NONE, OTHERS, SMALLER } from "../core/codes.js";
import { fileOf, hasCalls, nameOf, samplingError } from "../core/data.js";
import { amount, cutText, grouped, percent } from "../core/format.js";
import { letterWidth, redrawWith } from "../ui/canvas.js";
import { colorOf } from "../ui/color.js";
import { byId } from "../ui/dom.js";
import { on, set, state } from "../ui/state.js";
import { clearSvg, makeSvg } from "../ui/svg.js";
import { shown } from "../ui/view.js";
import { afterwards, soon } from "../ui/work.js";
import { showFacts } from "./function_facts.js";

/** @typedef {Arc & { f: number, label?: string }} Neighbor */
/** @typedef {"elapsed" | "calls"} ArcWeight */

const MOST = 12;
const LINE = 34;
const MARGIN = 24;
const RIBBON_ROOM = 44;
const WIDEST_MIDDLE = 170;
const MIDDLE_SHARE = 0.22;
const SMALL_LETTER = 5.6;
const EDGE = 4;

/** Returns the heaviest arcs to or from one side; the others are merged.
 * @param {Arc[]} arcs @param {"from" | "to"} end @param {ArcWeight} weight @returns {Neighbor[]} */
const neighborsOf = (arcs, end, weight) => {
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
const labelOf = (row) => {
  if (row.label) return row.label;
  if (row.f !== NONE) return nameOf(row.f);
  return row.how === "call" ? "(beginning of the trace)" : "(nothing: " + row.how + ")";
};
/** @param {Neighbor} row */
const tooltipOf = (row) => {
  const elapsed = amount(row.elapsed), each = amount(row.ended ? row.elapsed / row.ended : 0);
  const facts = hasCalls()
    ? `${grouped(row.calls)} calls (${row.how}), ${elapsed} elapsed, ${each} each`
    : `${elapsed} ± ${amount(samplingError(row.elapsed))} on the stack (${row.how})`;
  return [labelOf(row), facts, fileOf(row.f)].join("\n");
};
/** Returns a ribbon from (a, ya), `ta` thick, to (b, yb), `tb` thick.
 * @param {number} a @param {number} ya @param {number} ta @param {number} b @param {number} yb
 * @param {number} tb */
const ribbon = (a, ya, ta, b, yb, tb) => {
  const c = (a + b) / 2, [a0, a1, b0, b1] = [ya - ta / 2, ya + ta / 2, yb - tb / 2, yb + tb / 2];
  return `M${a},${a0} C${c},${a0} ${c},${b0} ${b},${b0} L${b},${b1} C${c},${b1} ${c},${a1} ${a},${a1} Z`;
};

class Picture {
  /** @param {SVGSVGElement} svg @param {ArcWeight} weight */
  constructor(svg, weight) {
    this.svg = svg;
    this.weight = weight;
    this.row = shown.view.functions.get(state.fn);
    this.left = neighborsOf(shown.view.callers.get(state.fn) || [], "from", weight);
    this.right = neighborsOf(shown.view.callees.get(state.fn) || [], "to", weight);
    this.height = Math.max(this.left.length, this.right.length, 2) * LINE + MARGIN;
    this.width = clearSvg(svg, this.height);
    this.middle = Math.min(WIDEST_MIDDLE, this.width * MIDDLE_SHARE);
    /** Width of the boxes with the names. */
    this.room = (this.width - this.middle) / 2 - RIBBON_ROOM;
    const own = weight === "elapsed" && this.row ? this.row.net : 0;
    /** Sums of both sides; the part without a callee is the function's self time. */
    this.heaviest = Math.max(this.sum(this.left), this.sum(this.right) + own);
    this.scale = (this.height - 30) / Math.max(this.heaviest, 1) * 0.8;
  }

  /** @param {Neighbor[]} rows */
  sum(rows) {
    return rows.reduce((sum, row) => sum + row[this.weight], 0);
  }

  /** @param {Neighbor} row */
  figure(row) {
    return this.weight === "elapsed" ? amount(row.elapsed) : grouped(row.calls) + " calls";
  }

  draw() {
    this.side(this.left, true);
    this.side(this.right, false);
    this.function();
  }

  /** @param {Neighbor[]} rows @param {boolean} isLeft */
  side(rows, isLeft) {
    const { svg, width, height, room, scale } = this;
    const x0 = room + RIBBON_ROOM, x1 = x0 + this.middle, top = height / 2 - rows.length * LINE / 2;
    let at = height / 2 - this.sum(rows) * scale / 2;
    rows.forEach((row, i) => {
      const thick = Math.max(1, row[this.weight] * scale), y = top + i * LINE + LINE / 2;
      const inner = at + thick / 2;
      at += row[this.weight] * scale;
      // Full width at the function, the thickness of a text line at the name.
      const ends = Math.min(thick, LINE - 6);
      const d = isLeft
        ? ribbon(room + EDGE, y, ends, x0, inner, thick)
        : ribbon(x1, inner, thick, width - room - EDGE, y, ends);
      const fill = colorOf(row.f === OTHERS ? SMALLER : row.f, row.how);
      svg.append(makeSvg("path", { d, fill, opacity: 0.55 }));
      this.box(row, y, isLeft, rows);
    });
    if (rows.length > 0) return;
    const text = isLeft ? "nothing is known to call it" : "calls nothing";
    const place = {
      x: isLeft ? 0 : width, y: height / 2, class: "quiet", "text-anchor": isLeft ? "start" : "end",
    };
    svg.append(makeSvg("text", place, text));
  }

  /** @param {Neighbor} row @param {number} y @param {boolean} isLeft @param {Neighbor[]} rows */
  box(row, y, isLeft, rows) {
    const { room, weight } = this, name = labelOf(row), x = isLeft ? 0 : this.width - room;
    const isFunction = row.f >= 0;
    const group = makeSvg("g", isFunction ? { class: "walk", tabindex: 0, role: "button" } : {});
    const whole = weight === "elapsed" && this.row ? this.row.elapsed : this.sum(rows);
    const how = row.how === "call" ? "" : (row.how === "jump" ? "tail call" : row.how) + ", ";
    const facts = how + this.figure(row) + ", " + percent(row[weight], Math.max(whole, 1));
    const plate = { y: y - LINE / 2 + 1.5, height: LINE - 3 };
    const color = colorOf(row.f === OTHERS || row.f === NONE ? SMALLER : row.f, row.how);
    const letters = Math.floor((room - 12) / letterWidth()), small = Math.floor((room - 10) / SMALL_LETTER);
    group.append(
      makeSvg("rect", { x, ...plate, width: room, rx: 3, class: "plate" }),
      makeSvg("rect", { x: isLeft ? x + room - EDGE : x, ...plate, width: EDGE, fill: color }),
      makeSvg("text", { x: x + 7, y: y - 3, class: "name" }, cutText(name, letters)),
      makeSvg("text", { x: x + 7, y: y + 11, class: "small" }, cutText(facts, small)),
      makeSvg("title", {}, tooltipOf(row)),
    );
    if (isFunction) {
      group.setAttribute("aria-label", `${isLeft ? "caller" : "callee"} ${name}, ${this.figure(row)}`);
      group.addEventListener("click", () => set({ fn: row.f }));
      group.addEventListener("keydown", (event) => {
        const { key } = /** @type {KeyboardEvent} */ (event);
        if (key !== "Enter" && key !== " ") return;
        event.preventDefault();
        set({ fn: row.f });
      });
    }
    this.svg.append(group);
  }

  // The function itself.
  function() {
    const { svg, height, middle, row } = this, x = this.room + RIBBON_ROOM, { fn } = state;
    const tall = Math.max(48, this.heaviest * this.scale + 6), fill = colorOf(fn, "");
    svg.append(makeSvg("rect", { x, y: height / 2 - tall / 2, width: middle, height: tall, rx: 4, fill }));
    /** @param {number} dy @param {string} content @param {string} cls */
    const text = (dy, content, cls) =>
      svg.append(makeSvg("text", { x: x + middle / 2, y: height / 2 + dy, class: cls + " on" }, content));
    text(row ? -10 : 0, cutText(nameOf(fn), Math.floor((middle - 8) / letterWidth())), "name");
    if (!row) return;
    text(5, amount(row.elapsed), "small");
    text(19, "self " + amount(row.net), "small");
  }
}
export const startNeighbors = () => {
  const svg = byId("neighbors", SVGSVGElement), select = byId("arc-weight", HTMLSelectElement);
  const label = select.closest("label");
  if (!hasCalls() && label) label.hidden = true;
  const draw = () => {
    if (state.tab === "calls") new Picture(svg, /** @type {ArcWeight} */ (select.value)).draw();
  };
  const both = () => {
    showFacts();
    draw();
  };
  select.addEventListener("change", draw);
  on(["view"], afterwards(both));
  on(["fn", "tab"], both);
  redrawWith(svg, soon(draw));
  both();
};
