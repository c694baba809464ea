// @ts-check
// Axis of the timeline in milliseconds of virtual time since the first region began; regions below
// it.
import { axisLabel, axisStep } from "../core/axis.js";
import { data } from "../core/data.js";
import { cutText, formatTime, grouped, moment } from "../core/format.js";
import { cssColor } from "../ui/theme.js";
import { AXIS, plotWidth, REGION, SMALL_FONT, visible, xOf } from "./sizes.js";

const LABEL_ROOM = 110;
const LABEL_GAP = 12;
const LETTER = 6.2;
const LEAST_LETTERS = 3;

/** @param {CanvasRenderingContext2D} g @param {number} x @param {number} top @param {number} bottom
 * @param {string} color */
const verticalLine = (g, x, top, bottom, color) => {
  g.strokeStyle = color;
  g.beginPath();
  g.moveTo(x, top);
  g.lineTo(x, bottom);
  g.stroke();
};
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view */
export const drawAxis = (g, view) => {
  const { u0, u1, left, width } = view, bottom = view.canvas.clientHeight;
  const ink = cssColor("--ink"), quiet = cssColor("--quiet"), rule = cssColor("--rule");
  const step = axisStep(u1 - u0, plotWidth(view) / LABEL_ROOM);
  g.font = SMALL_FONT;
  g.fillStyle = quiet;
  g.fillText(data.exact ? "virtual time" : "time", 0, AXIS / 2);
  let free = left - 1, isFirst = true;
  for (const span of view.model.spans) {
    const end = span.u + span.end - span.begin;
    if (end < u0 || span.u > u1) continue;
    if (span.u > u0) {
      g.setLineDash([2, 3]);
      verticalLine(g, xOf(view, span.u), 2, bottom, quiet);
      g.setLineDash([]);
    }
    // Begin and end of what is in view, since the origin.
    const offset = span.begin - span.u - data.origin;
    const t0 = Math.max(span.u, u0) + offset, t1 = Math.min(end, u1) + offset;
    for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) {
      const x = xOf(view, t - offset);
      verticalLine(g, x + 0.5, AXIS - 4, bottom, rule);
      const text = axisLabel(t, step), w = g.measureText(text).width;
      const at = Math.max(left, Math.min(x - w / 2, width - w));
      if (at <= free) continue;
      g.fillStyle = isFirst ? ink : quiet;
      g.fillText(text, at, AXIS / 2);
      free = at + w + LABEL_GAP;
      isFirst = false;
    }
  }
};
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view */
export const drawRegions = (g, view) => {
  const ink = cssColor("--ink"), fills = [cssColor("--rule"), cssColor("--same-soft")];
  g.font = SMALL_FONT;
  let free = view.left;
  view.model.regions.filter((region) => region.depth === 0).forEach((region, at) => {
    const { a, b, w } = visible(view, region);
    if (b <= view.left || a >= view.width || w < 0.5) return;
    g.fillStyle = fills[at % 2];
    g.fillRect(a, AXIS, w, REGION - 2);
    view.zones.push({
      x0: a, x1: b, y0: AXIS, y1: AXIS + REGION, head: "region " + region.name, go: [region.u0, region.u1],
      lines: [
        ["begins", moment(region.begin)], ["elapsed", formatTime(region.end - region.begin)],
        ["operations", grouped(region.operations)],
      ],
    });
    const begin = Math.max(a, free), letters = Math.floor((b - begin - 8) / LETTER);
    const text = letters >= LEAST_LETTERS ? cutText(region.name, letters) : "";
    if (!text) return;
    g.fillStyle = ink;
    g.fillText(text, begin + 4, AXIS + REGION / 2 - 1);
    free = begin + 8 + g.measureText(text).width;
  });
};
