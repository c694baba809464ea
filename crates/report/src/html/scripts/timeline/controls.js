// @ts-check
// Keys and buttons of the timeline.
import { byId, isShortcut, make } from "../ui/dom.js";
import { on, set, state } from "../ui/state.js";

const PARTS_OF_A_MOVE = 8;

const clear = () => set({ sel: null });
/** Returns the next or previous place of "Go to".
 * @param {TimelineView} view @param {boolean} forward */
const nextPlace = ({ model, u0, u1 }, forward) => {
  const order = [...model.places].sort((a, b) => a.u0 - b.u0), now = (u0 + u1) / 2;
  /** @param {TimelinePlace} place */
  const middle = (place) => (place.u0 + place.u1) / 2;
  return forward ? order.find((p) => middle(p) > now + 1) : order.findLast((p) => middle(p) < now - 1);
};
/** @param {TimelineView} view @param {TimelineActions} actions */
const followKeys = (view, { show, zoom, showPlace, select }) => {
  /** @param {number} by */
  const move = (by) => {
    const distance = (view.u1 - view.u0) / PARTS_OF_A_MOVE * by;
    show(view.u0 + distance, view.u1 + distance);
  };
  const left = () => move(-1), right = () => move(1), nearer = () => zoom(0.5), farther = () => zoom(2);
  const all = () => show(0, view.model.length);
  /** @param {boolean} forward */
  const go = (forward) => {
    const place = nextPlace(view, forward);
    if (place) showPlace(place);
  };
  /** @type {Record<string, () => void>} */
  const acts = {
    ArrowLeft: left, ArrowRight: right, a: left, d: right, "+": nearer, "=": nearer, w: nearer, "-": farther,
    s: farther, 0: all, Home: all, n: () => go(true), p: () => go(false),
    Enter: () => select(view.u0, view.u1), Escape: clear,
  };
  view.canvas.addEventListener("keydown", (event) => {
    const act = acts[event.key];
    if (!act || isShortcut(event)) return;
    event.preventDefault();
    act();
  });
};
/** @param {TimelineView} view @param {TimelineActions} actions */
export const startTimelineControls = (view, actions) => {
  const { zoom, show, showPlace, select, redraw } = actions, { places } = view.model;
  followKeys(view, actions);
  const choice = byId("window", HTMLSelectElement);
  const options = places.map((place, at) => make("option", { value: String(at) }, place.label));
  choice.append(make("option", { value: "" }, "…"), ...options);
  choice.addEventListener("change", () => {
    if (choice.value !== "") showPlace(places[Number(choice.value)]);
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => show(0, view.model.length));
  const selectView = byId("select-view", HTMLButtonElement);
  const selectNone = byId("select-none", HTMLButtonElement);
  selectView.addEventListener("click", () => select(view.u0, view.u1));
  selectNone.addEventListener("click", clear);
  const enable = () => {
    selectNone.disabled = !state.sel;
    selectView.disabled = state.profile !== "a";
  };
  on(["sel", "profile"], () => {
    enable();
    redraw();
  });
  enable();
};
