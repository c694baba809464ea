// @ts-check
// Pointer in the timeline: dragging in the lanes selects, dragging the axis moves, and the edges of
// the selection can be dragged.
import { fileOf, nameOf } from "../core/data.js";
import { amount, moment } from "../core/format.js";
import { set, state } from "../ui/state.js";
import { hideTip, showTip } from "../ui/tooltip.js";
import { cpusOf } from "./cpus.js";
import { selectedEdges } from "./draw.js";
import { AXIS, plotWidth, xOf } from "./sizes.js";

const EDGE = 5;
const BESIDE_NAMES = 4;
const DRAG_FROM = 3;
const PIXELS_PER_LINE = 30;
const MOVE_PER_PIXEL = 1 / 1000;
const ZOOM_PER_PIXEL = 1 / 400;
const ZOOM_OF_DOUBLE_CLICK = 0.25;
const MARGIN = 0.05;

/** @param {TimelineView} view @param {MouseEvent} event */
const under = (view, event) => {
  const box = view.canvas.getBoundingClientRect();
  const px = event.clientX - box.left, py = event.clientY - box.top;
  /** @param {{ x0: number, x1: number, y0: number, y1: number }} r */
  const isHit = (r) => r.x0 <= px && px <= r.x1 && r.y0 <= py && py < r.y1;
  const edge = selectedEdges(view)?.findIndex((u) => Math.abs(xOf(view, u) - px) < EDGE) ?? -1;
  const u = view.u0 + (px - view.left) / plotWidth(view) * (view.u1 - view.u0);
  return { px, py, edge, u, call: view.drawn.findLast(isHit), zone: view.zones.findLast(isHit) };
};
/** @param {TimelineView} view @param {DrawnCall} drawn @returns {Fact[]} */
const callFacts = ({ model }, { call, window }) => {
  /** @type {Fact[]} */
  const facts = [
    ["elapsed", amount(call.end - call.begin) + (call.cut ? " in what is shown" : "")],
    ["begins", moment(call.begin)],
    ["on the stack of", model.lanes[call.lane].name], ["came to run by", call.how],
  ];
  const cpus = cpusOf(model, window, call), file = fileOf(call.f);
  if (cpus) facts.push(["ran on CPU", cpus]);
  if (file) facts.push(["source", file]);
  return facts;
};
/** @param {TimelineView} view @param {TimelineActions} actions */
const followDrags = (view, { redraw, show, select }) => {
  view.canvas.addEventListener("pointerdown", (event) => {
    const { u, py, px, edge } = under(view, event), edges = selectedEdges(view);
    if (event.button !== 0 || px < view.left - BESIDE_NAMES) return;
    const anchor = edges && edge >= 0 ? edges[1 - edge] : u, pan = py < AXIS || event.shiftKey;
    view.drag = { x: event.clientX, u0: view.u0, u1: view.u1, moved: false, pan, anchor, select: null };
  });
  const end = () => {
    view.drag = null;
    redraw();
  };
  window.addEventListener("pointerup", () => {
    const edges = view.drag?.select && selectedEdges(view);
    if (view.drag && edges) {
      view.drag.select = null;
      select(edges[0], edges[1]);
    }
    // The click that follows belongs to the drag.
    setTimeout(end);
  });
  window.addEventListener("pointercancel", end);
  window.addEventListener("pointermove", (event) => {
    const { drag } = view;
    if (!drag) return;
    if (Math.abs(event.clientX - drag.x) > DRAG_FROM) drag.moved = true;
    if (!drag.moved) return;
    hideTip();
    if (drag.pan) {
      const by = (drag.x - event.clientX) / plotWidth(view) * (drag.u1 - drag.u0);
      show(drag.u0 + by, drag.u1 + by);
    } else if (state.profile === "a") {
      drag.select = [drag.anchor, Math.max(view.u0, Math.min(view.u1, under(view, event).u))];
      redraw();
    }
  });
};
/** @param {TimelineView} view @param {MouseEvent} event */
const hover = (view, event) => {
  if (view.drag?.moved) return;
  const { call, zone, py, px, edge } = under(view, event);
  const cursor = py < AXIS ? "grab" : px > view.left ? "crosshair" : "default";
  view.canvas.style.cursor = edge >= 0 ? "ew-resize" : call || zone?.go ? "pointer" : cursor;
  if (call) showTip(event, nameOf(call.call.f), callFacts(view, call));
  else if (zone) showTip(event, zone.head, zone.lines);
  else hideTip();
};
/** @param {TimelineView} view @param {TimelineActions} actions */
export const followPointer = (view, actions) => {
  const { canvas } = view, { show, zoom } = actions;
  followDrags(view, actions);
  canvas.addEventListener("mousemove", (event) => hover(view, event));
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("click", (event) => {
    if (view.drag?.moved) return;
    const { call, zone } = under(view, event);
    if (call && call.call.f >= 0) set({ fn: call.call.f });
    else if (zone?.go) show(...zone.go);
  });
  canvas.addEventListener("dblclick", (event) => {
    const { call, u } = under(view, event);
    if (!call) zoom(ZOOM_OF_DOUBLE_CLICK, u);
    else {
      const { u0, u1 } = call.call, margin = (u1 - u0) * MARGIN;
      show(u0 - margin, u1 + margin);
    }
  });
  canvas.addEventListener("wheel", (event) => {
    const { px, u } = under(view, event);
    // Over the names the wheel scrolls the page as usual.
    if (px < view.left) return;
    event.preventDefault();
    hideTip();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? PIXELS_PER_LINE : 1;
    const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (!isSideways) zoom(Math.exp(event.deltaY * lines * ZOOM_PER_PIXEL), u);
    else {
      const by = (event.deltaX || event.deltaY) * lines * MOVE_PER_PIXEL * (view.u1 - view.u0);
      show(view.u0 + by, view.u1 + by);
    }
  }, { passive: false });
};
