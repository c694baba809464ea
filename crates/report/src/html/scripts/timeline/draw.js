// @ts-check
// Drawing of the whole timeline: axis, regions, lanes, single calls, selection.
import { DARK_ALPHA, fitCanvas } from "../ui/canvas.js";
import { root } from "../ui/dom.js";
import { selection, state } from "../ui/state.js";
import { cssColor, isDark } from "../ui/theme.js";
import { drawAxis, drawRegions } from "./axis.js";
import { drawCalls } from "./calls.js";
import { cpusHeight, drawCpuLabels, drawCpus } from "./cpus.js";
import { arrangeLanes, drawDensity, drawLabels, drawSlices } from "./lanes.js";
import { AXIS, BAND, PALE, plotWidth, visible, WIDE_BIN, xOf } from "./sizes.js";

/** Returns the edges of the selection; during a drag, of the new one.
 * @param {TimelineView} view */
export const selectedEdges = (view) => {
  if (view.drag?.select) return [...view.drag.select].sort((a, b) => a - b);
  const sel = state.profile === "a" ? selection() : null;
  return sel && sel.map(view.model.toU);
};
/** @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {number} height */
const drawLanes = (g, view, height) => {
  const { model, places, left } = view, alpha = isDark() ? DARK_ALPHA : 1, panel = cssColor("--panel");
  const bins = model.length / model.count / (view.u1 - view.u0) * plotWidth(view);
  g.save();
  g.beginPath();
  g.rect(left, 0, plotWidth(view), height);
  g.clip();
  g.globalAlpha = alpha;
  g.fillStyle = panel;
  for (const place of places) g.fillRect(left, place.y, plotWidth(view), BAND);
  g.globalAlpha = alpha * (bins > WIDE_BIN ? PALE : 1);
  places.forEach((place, lane) => drawDensity(g, view, lane, place.y));
  g.globalAlpha = alpha;
  drawCpus(g, view, bins);
  if (bins > 1) drawSlices(g, view, model.slices);
  for (const window of view.detailed) {
    const { a, w } = visible(view, window);
    g.fillStyle = panel;
    for (const place of places) g.fillRect(a, place.y, w, BAND);
    drawSlices(g, view, window.slices);
    drawCalls(g, view, window);
  }
  g.globalAlpha = 1;
  drawSelection(g, view, height);
  g.restore();
};
/** Dims the time outside of the selection.
 * @param {CanvasRenderingContext2D} g @param {TimelineView} view @param {number} height */
const drawSelection = (g, view, height) => {
  const edges = selectedEdges(view);
  if (!edges) return;
  const [a, b] = edges.map((u) => xOf(view, u));
  g.fillStyle = cssColor("--veil");
  g.fillRect(view.left, AXIS, Math.max(0, a - view.left), height);
  g.fillRect(b, AXIS, Math.max(0, view.width - b), height);
  g.fillStyle = cssColor("--focus");
  for (const edge of [a, b]) g.fillRect(edge - 1, AXIS - 6, 2, height);
};
/** @param {TimelineView} view */
export const drawTimeline = (view) => {
  const began = performance.now();
  view.width = view.canvas.clientWidth;
  const height = arrangeLanes(view, cpusHeight(view.model)), g = fitCanvas(view.canvas, height);
  view.drawn = [];
  view.zones = [];
  drawAxis(g, view);
  drawRegions(g, view);
  drawLanes(g, view, height);
  drawLabels(g, view);
  drawCpuLabels(g, view);
  root.dataset.timelineMs = (performance.now() - began).toFixed(1);
};
