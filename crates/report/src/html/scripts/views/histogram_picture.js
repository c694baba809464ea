// @ts-check
// Picture of a histogram: bars divided by caller, counts at the left, times below, percentiles.
import { bucketLow } from "../core/buckets.js";
import { NONE } from "../core/codes.js";
import { nameOf } from "../core/data.js";
import { amount, formatCount, grouped, percent, unitName, withUnit } from "../core/format.js";
import { clearSvg, makeSvg } from "../ui/svg.js";
import { levelsOf, percentile, stacksOf } from "./histogram_scale.js";

const SHADES = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"];
const REST = "#8d949d";
const LEFT = 46;
const RIGHT = 8;
const BOTTOM = 34;
const TOP = 20;
const HEIGHT = 220;
const PLOT = HEIGHT - TOP - BOTTOM;
const BASE = HEIGHT - BOTTOM;
const LINE = 13;
const HALF_LETTER = 3.2;
const LETTER = 5.9;
// Buckets of a power of two, and the range up to which each bucket has a label.
const PER_POWER = 4;
const FEW = 8;
/** @type {[string, number][]} */
const PERCENTILES = [["median", 0.5], ["90 %", 0.9], ["99 %", 0.99], ["99.9 %", 0.999]];

/** @param {number} caller */
const callerName = (caller) => (caller === NONE ? "(entry)" : nameOf(caller));

export class HistogramPicture {
  /** @param {SVGSVGElement} svg @param {HistogramRow[]} rows @param {boolean} isByCaller
   * @param {boolean} isLog */
  constructor(svg, rows, isByCaller, isLog) {
    this.svg = svg;
    this.isByCaller = isByCaller;
    this.isLog = isLog;
    this.stacks = stacksOf(rows, SHADES.length, isByCaller);
    this.width = clearSvg(svg, HEIGHT);
    this.barWidth = (this.width - LEFT - RIGHT) / this.stacks.stacks.length;
    const { level, ticks } = levelsOf(this.stacks.most, PLOT, isLog);
    this.level = level;
    this.ticks = ticks;
  }

  /** @param {number} bucket */
  x(bucket) {
    return LEFT + (bucket - this.stacks.low) * this.barWidth;
  }

  /** @param {string} name @param {Record<string, string | number>} attributes
   * @param {string} [text] */
  add(name, attributes, text) {
    this.svg.append(makeSvg(name, attributes, text));
  }

  draw() {
    this.counts();
    this.stacks.stacks.forEach((stack, at) => { if (this.stacks.sums[at] > 0) this.bar(stack, at); });
    this.add("line", { x1: LEFT, x2: this.width, y1: BASE + 0.5, y2: BASE + 0.5, class: "base" });
    this.times();
    this.percentiles();
  }

  // Counts at the left.
  counts() {
    let free = BASE + 20;
    for (const n of this.ticks) {
      const y = BASE - this.level(n);
      if (y > free - LINE) continue;
      free = y;
      this.add("line", { x1: LEFT, x2: this.width, y1: y, y2: y, class: "grid" });
      this.add("text", { x: LEFT - 6, y: y + 4, class: "small", "text-anchor": "end" }, formatCount(n));
    }
  }

  /** @param {number[]} stack @param {number} at */
  bar(stack, at) {
    const { low, sums, order, total } = this.stacks, bucket = at + low, group = makeSvg("g");
    // On a logarithmic scale, parts of a bar have no length of their own: they divide its length in
    // proportion.
    const length = this.level(sums[at]);
    /** @param {number} n */
    const height = (n) => (this.isLog ? length * n / sums[at] : this.level(n));
    const frame = { x: this.x(bucket) + 0.5, width: Math.max(0.7, this.barWidth - 1) };
    let below = 0, names = "";
    stack.forEach((n, caller) => {
      if (n === 0) return;
      const a = height(below), b = height(below + n), isNamed = caller < order.length;
      const fill = !this.isByCaller ? SHADES[0] : isNamed ? SHADES[caller] : REST;
      group.append(makeSvg("rect", { ...frame, y: BASE - b, height: Math.max(0.6, b - a), fill }));
      below += n;
      const name = isNamed ? callerName(order[caller]) : "others";
      if (this.isByCaller) names += "\n" + grouped(n) + " from " + name;
    });
    const range = `${amount(bucketLow(bucket))} to ${withUnit(bucketLow(bucket + 1) - 1)}`;
    group.append(
      makeSvg("title", {}, `${range}: ${grouped(sums[at])} calls, ${percent(sums[at], total)}${names}`),
    );
    this.svg.append(group);
  }

  // Times below, as many as fit: powers of two, four buckets apart, where they occur.
  times() {
    const { low, high } = this.stacks, step = high - low < FEW ? 1 : PER_POWER;
    let right = -Infinity;
    for (let bucket = Math.ceil(low / step) * step; bucket <= high + 1; bucket += step) {
      const text = amount(bucketLow(bucket)), half = text.length * HALF_LETTER, x = this.x(bucket);
      this.add("line", { x1: x, x2: x, y1: BASE, y2: BASE + 4, class: "base" });
      if (x - half < right + 6 || x + half > this.width) continue;
      right = x + half;
      this.add("text", { x, y: BASE + 16, class: "small", "text-anchor": "middle" }, text);
    }
    const unit = "elapsed " + unitName() + " per call";
    this.add("text", { x: this.width, y: HEIGHT - 3, class: "small quiet", "text-anchor": "end" }, unit);
    this.add("text", { x: 0, y: 11, class: "small quiet" }, "calls");
  }

  // The buckets in which percentiles lie.
  percentiles() {
    let labelEnd = LEFT;
    for (const [name, part] of PERCENTILES) {
      const at = percentile(this.stacks, part), bucket = at + this.stacks.low;
      if (at < 0) continue;
      const x = this.x(bucket) + this.barWidth / 2;
      const text = name + " ≈ " + amount((bucketLow(bucket) + bucketLow(bucket + 1) - 1) / 2);
      const w = text.length * LETTER, left = Math.min(Math.max(x + 3, labelEnd), this.width - w);
      this.add("line", { x1: x, x2: x, y1: TOP - 6, y2: BASE, class: "rank" });
      if (left < labelEnd) continue;
      this.add("text", { x: left, y: 11, class: "small" }, text);
      labelEnd = left + w + 8;
    }
  }

  legend() {
    if (!this.isByCaller) return [];
    const { order, callers } = this.stacks;
    const rows = order.map((c, at) => [callerName(c) + " " + formatCount(callers.get(c) ?? 0), SHADES[at]]);
    return callers.size > order.length ? [...rows, ["others", REST]] : rows;
  }
}
