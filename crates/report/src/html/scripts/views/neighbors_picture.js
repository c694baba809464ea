// @ts-check
// Picture of a function between its callers and its callees.
import { NONE, OTHERS, SMALLER } from "../core/codes.js";
import { nameOf } from "../core/data.js";
import { amount, cutText, grouped, percent } from "../core/format.js";
import { letterWidth } from "../ui/canvas.js";
import { colorOf } from "../ui/color.js";
import { set, state } from "../ui/state.js";
import { clearSvg, makeSvg } from "../ui/svg.js";
import { shown } from "../ui/view.js";
import { labelOf, neighborsOf, tooltipOf } from "./neighbors_rows.js";

/** @typedef {import("./neighbors_rows.js").Neighbor} Neighbor */
/** @typedef {import("./neighbors_rows.js").ArcWeight} ArcWeight */

const LINE = 34;
const MARGIN = 24;
const RIBBON_ROOM = 44;
const WIDEST_MIDDLE = 170;
const MIDDLE_SHARE = 0.22;
const SMALL_LETTER = 5.6;
const EDGE = 4;

/** Returns a ribbon from (a, ya), `ta` thick, to (b, yb), `tb` thick.
 * @param {number} a @param {number} ya @param {number} ta @param {number} b @param {number} yb
 * @param {number} tb */
const ribbon = (a, ya, ta, b, yb, tb) => {
  const c = (a + b) / 2, [a0, a1, b0, b1] = [ya - ta / 2, ya + ta / 2, yb - tb / 2, yb + tb / 2];
  return `M${a},${a0} C${c},${a0} ${c},${b0} ${b},${b0} L${b},${b1} C${c},${b1} ${c},${a1} ${a},${a1} Z`;
};

export class NeighborsPicture {
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
