// @ts-check
// Lanes of several CPUs: the running thread, and times in which the CPU is halted or waits for its
// turn.
import { CPU_HALTED, CPU_IDLE, CPU_WAITS } from "../core/codes.js";
import { cutText, formatTime, moment } from "../core/format.js";
import { letterWidth, MONOSPACE, patternOf } from "../ui/canvas.js";
import { DARK_TEXT } from "../ui/color.js";
import { cssColor } from "../ui/theme.js";
import { cpuBars, STACKED } from "./cpu_bars.js";
import { drawLabel, timeInView } from "./lanes.js";
import {
  BAND, COLORS, filledWidth, GAP, isInView, PALE, plotWidth, TOP, visible, WIDE_BIN,
} from "./sizes.js";

const NAMES = ["kernel", "user mode", "interrupt", "idle task", "halted", "waits for its turn"];
const FILLS = [COLORS.kernel, COLORS.user, COLORS.interrupt, COLORS.idle, COLORS.halted];
const HATCH = "repeating-linear-gradient(135deg, var(--same) 0 1px, var(--panel) 1px 4px)";
const TILE = 6;
const BELOW = 8;
const LETTERS_OF_A_NAME = 5;

/** Row of the legend. */
export const WAITS_LEGEND = [NAMES[CPU_WAITS] + " (CPUs execute in turn)", HATCH];
/** @param {TimelineModel} model */
export const cpusHeight = ({ cpus }) => (cpus.length > 0 ? cpus.length * (BAND + GAP) + BELOW : 0);
/** @param {number} cpu */
const top = (cpu) => TOP + cpu * (BAND + GAP);
/** @param {CanvasRenderingContext2D} g */
const hatching = (g) => patternOf(g, TILE, (tile) => {
  tile.strokeStyle = cssColor("--same");
  tile.beginPath();
  for (const at of [-TILE, 0, TILE]) {
    tile.moveTo(at - 1, TILE + 1);
    tile.lineTo(at + TILE + 1, -1);
  }
  tile.stroke();
});
/** @param {number[]} times */
const executed = (times) => times.slice(0, CPU_HALTED).reduce((all, time) => all + time, 0);
/** @param {TimelineView} view @param {number} cpu */
const timesOf = (view, cpu) => view.model.cpus[cpu].sums.map((sum) => timeInView(view, sum));

class CpuDrawing {
  /** @param {CanvasRenderingContext2D} g @param {TimelineView} view */
  constructor(g, view) {
    this.g = g;
    this.view = view;
    this.hatch = hatching(g) ?? "";
  }

  /** @param {number} kind @param {number} x @param {number} y @param {number} w @param {number} h */
  fill(kind, x, y, w, h) {
    if (w <= 0 || h <= 0) return;
    this.g.fillStyle = kind === CPU_WAITS ? this.hatch : FILLS[kind];
    this.g.fillRect(x, y, w, h);
  }

  /** @param {number} cpu */
  density(cpu) {
    for (const { x, w, heights } of cpuBars(this.view, cpu)) {
      let y = top(cpu) + BAND;
      heights.forEach((h, at) => {
        y -= h;
        this.fill(STACKED[at], x, y, w, h);
      });
    }
  }

  /** Writes the thread's name on its stretch.
   * @param {CpuSlice} slice @param {number} a @param {number} w @param {number} y */
  name(slice, a, w, y) {
    const { g } = this, lane = this.view.model.lanes[slice.lane], letter = letterWidth();
    if (!["thread", "others"].includes(lane.kind) || slice.kind === CPU_HALTED) return;
    const text = cutText(lane.name, Math.floor((w - 8) / letter));
    if (!text || w < LETTERS_OF_A_NAME * letter) return;
    g.font = MONOSPACE;
    if (slice.kind === CPU_WAITS) {
      g.fillStyle = cssColor("--panel");
      g.fillRect(a + 2, y + 3, g.measureText(text).width + 4, BAND - 6);
    }
    g.fillStyle = slice.kind === CPU_WAITS ? cssColor("--quiet") : DARK_TEXT;
    g.fillText(text, a + 4, y + BAND / 2);
  }

  /** @param {Placed<CpuSlice>[]} slices @param {number} cpu */
  slices(slices, cpu) {
    const { g, view } = this, y = top(cpu);
    for (const s of slices) {
      const { a, b, w } = visible(view, s), lane = view.model.lanes[s.lane];
      if (!isInView(view, s) || w < 0.5) continue;
      g.fillStyle = cssColor("--panel");
      g.fillRect(a, y, w, BAND);
      this.fill(s.kind, a, y, filledWidth(w), BAND);
      this.name(s, a, w, y);
      const pid = lane.pid ? " " + lane.pid : "";
      const holder = s.kind === CPU_HALTED || s.kind === CPU_IDLE ? "" : ": " + lane.name + pid;
      /** @type {Fact[]} */
      const lines = [["", NAMES[s.kind]], ["from", moment(s.begin)], ["for", formatTime(s.end - s.begin)]];
      view.zones.push({ x0: a, x1: b, y0: y, y1: y + BAND, head: "CPU " + cpu + holder, lines });
    }
  }

  /** @param {number} cpu @param {number} bins width of a bin in pixels */
  lane(cpu, bins) {
    const { g, view } = this, y = top(cpu), times = timesOf(view, cpu);
    g.fillStyle = cssColor("--panel");
    g.fillRect(view.left, y, plotWidth(view), BAND);
    view.zones.push({
      x0: view.left, x1: view.width, y0: y, y1: y + BAND, head: "CPU " + cpu + ", all that is in view",
      lines: [
        ["executes", formatTime(executed(times))], ["halted", formatTime(times[CPU_HALTED])],
        ["waits for its turn", formatTime(times[CPU_WAITS])],
      ],
    });
    const alpha = g.globalAlpha;
    g.globalAlpha = alpha * (bins > WIDE_BIN ? PALE : 1);
    this.density(cpu);
    g.globalAlpha = alpha;
    if (bins > 1) this.slices(view.model.cpus[cpu].slices, cpu);
    for (const window of view.detailed) if (window.cpus[cpu]) this.slices(window.cpus[cpu], cpu);
  }
}
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view
 * @param {number} bins width of a bin in pixels */
export const drawCpus = (g, view, bins) => {
  const drawing = new CpuDrawing(g, view);
  view.model.cpus.forEach((_, cpu) => drawing.lane(cpu, bins));
};
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view */
export const drawCpuLabels = (g, view) => view.model.cpus.forEach((_, cpu) =>
  drawLabel(g, view, "CPU " + cpu, "", executed(timesOf(view, cpu)), top(cpu)));
/** Returns the CPUs on which a call ran, as far as the window shows them.
 * @param {TimelineModel} model @param {PlacedWindow} window @param {SingleCall} call */
export const cpusOf = ({ cpus, lanes }, window, call) => {
  if (cpus.length === 0) return "";
  /** @param {LaneSlice} s */
  const ran = (s) => s.lane === call.lane && s.begin < call.end && s.end > call.begin;
  /** @param {LaneSlice} s */
  const interrupts = (s) => s.begin <= call.begin && call.begin < s.end && lanes[s.lane].kind === "interrupt";
  const found = window.slices.filter((s) => ran(s) || interrupts(s)).map((s) => s.cpu);
  return [...new Set(found)].sort((a, b) => a - b).join(", ");
};
