// @ts-check
// Timeline: who had the CPU when. Single calls are drawn below their lane where they are known and
// wide enough. With several CPUs, their lanes are above.
import { data } from "../core/data.js";
import { redrawWith } from "../ui/canvas.js";
import { showLegend } from "../ui/color.js";
import { byId } from "../ui/dom.js";
import { isRestoring, on, set, state } from "../ui/state.js";
import { soon } from "../ui/work.js";
import { startTimelineControls } from "./controls.js";
import { WAITS_LEGEND } from "./cpus.js";
import { describeView, Details } from "./details.js";
import { drawTimeline } from "./draw.js";
import { timelineModel } from "./model.js";
import { followPointer } from "./pointer.js";
import { COLORS, LEFT, LEFT_ON_SMALL, SMALL_SCREEN } from "./sizes.js";

/** Shortest stretch in view, ns. */
const SHORTEST = 20;
const PLACE_MARGIN = 0.02;
const CALL_MARGIN = 0.05;

/** The timeline, once it is there: others show calls in it.
 * @type {{ view: TimelineView | null, actions: TimelineActions | null,
 *   showCall: ((f: number, begin: number, end: number) => void) | null }} */
export const timeline = { view: null, actions: null, showCall: null };

/** @param {TimelineModel} model @returns {TimelineView} */
const createView = (model) => {
  const small = innerWidth < SMALL_SCREEN;
  return {
    canvas: byId("timeline", HTMLCanvasElement), model, small, left: small ? LEFT_ON_SMALL : LEFT, width: 0,
    u0: 0,
    u1: model.length, places: [], hidden: 0, zones: [], drawn: [], detailed: [], drag: null,
  };
};
/** @param {TimelineView} view @param {Details} details @param {() => void} redraw
 * @returns {TimelineActions} */
const createActions = (view, details, redraw) => {
  const { model } = view;
  /** @param {number} a @param {number} b */
  const show = (a, b) => {
    const length = Math.min(model.length, Math.max(Math.min(SHORTEST, model.length), b - a));
    view.u0 = Math.max(0, Math.min((a + b - length) / 2, model.length - length));
    view.u1 = view.u0 + length;
    const from = model.toTime(view.u0);
    set(length >= model.length ? { from: null, to: null } : { from, to: from + length });
    details.load(view, redraw);
    redraw();
  };
  return {
    redraw,
    show,
    zoom: (factor, at = (view.u0 + view.u1) / 2) =>
      show(at - (at - view.u0) * factor, at + (view.u1 - at) * factor),
    showPlace: ({ u0, u1 }) => {
      const margin = (u1 - u0) * PLACE_MARGIN;
      show(u0 - margin, u1 + margin);
    },
    select: (a, b) => {
      const from = Math.round(model.toTime(Math.max(0, a)));
      const to = Math.round(model.toTime(Math.min(model.length, b)));
      if (to > from && state.profile === "a") set({ sel: from + "-" + to });
    },
  };
};
/** Follows the state: the chosen region, and the stretch in the address.
 * @param {TimelineView} view @param {Details} details @param {TimelineActions} actions */
const followState = (view, details, { show, redraw }) => {
  const { model } = view;
  on(["fn"], redraw);
  on(["region"], () => {
    if (isRestoring()) return;
    const { name } = data.views[state.region], found = model.regions.find((region) => region.name === name);
    if (found) show(found.u0, found.u1);
    else show(0, model.length);
  });
  const follow = () => {
    const { from, to } = state, a = from === null ? 0 : model.toU(from);
    const b = from === null || to === null ? model.length : a + to - from;
    if (a === view.u0 && b === view.u1) return;
    view.u0 = Math.max(0, Math.min(a, model.length - 1));
    view.u1 = Math.min(model.length, b);
    details.load(view, redraw);
    redraw();
  };
  on(["from", "to"], () => { if (isRestoring()) follow(); });
  follow();
};
export const startTimeline = () => {
  const model = timelineModel();
  if (!model) return;
  const view = createView(model), details = new Details();
  const draw = () => {
    view.detailed = details.inView(view);
    drawTimeline(view);
    describeView(view);
  };
  const actions = createActions(view, details, soon(draw));
  startTimelineControls(view, actions);
  followPointer(view, actions);
  const legend = ["kernel", "user", "interrupt", "idle"].map((name) =>
    [name, COLORS[/** @type {keyof typeof COLORS} */ (name)]]);
  showLegend(byId("time-legend"), model.cpus.length > 0 ? [...legend, WAITS_LEGEND] : legend);
  followState(view, details, actions);
  redrawWith(view.canvas, actions.redraw);
  details.load(view, actions.redraw);
  draw();
  timeline.view = view;
  timeline.actions = actions;
  timeline.showCall = (f, begin, slowestEnd) => {
    const place = model.places.find((one) => one.function === f && one.begin === begin);
    const u = model.toU(begin), length = (place ? place.end : slowestEnd) - begin;
    const margin = length * CALL_MARGIN;
    actions.show(u - margin, u + length + margin);
  };
};
