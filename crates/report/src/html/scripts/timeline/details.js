// @ts-check
// Single calls of what is in view: they are read where they are few enough to be distinguished, a
// view's width on both sides in advance.
import { data } from "../core/data.js";
import { formatTime, grouped, moment } from "../core/format.js";
import { collectCalls, eventsIn, MOST_EVENTS } from "../trace/calls.js";
import { byId, make } from "../ui/dom.js";
import { state } from "../ui/state.js";
import { tracked } from "../ui/work.js";

/** @param {TimelineView} view */
const timesInView = ({ model, u0, u1 }) => ({ from: model.toTime(u0), to: model.toTime(u1) });

export class Details {
  constructor() {
    /** @type {{ from: number, to: number, windows: PlacedWindow[] } | null} */
    this.loaded = null;
    this.latest = 0;
  }

  /** Reads the calls in view, if they are not here; `done` is called once they are.
   * @param {TimelineView} view @param {() => void} done */
  load(view, done) {
    const { model, u0, u1 } = view, { from, to } = timesInView(view), { events, here } = eventsIn(from, to);
    if (events > MOST_EVENTS || !here) return;
    if (this.loaded && this.loaded.from <= from && this.loaded.to >= to) return;
    const wide = {
      from: model.toTime(Math.max(0, 2 * u0 - u1)), to: model.toTime(Math.min(model.length, 2 * u1 - u0)),
    };
    const range = eventsIn(wide.from, wide.to).events <= MOST_EVENTS ? wide : { from, to };
    const mine = ++this.latest;
    tracked(async () => {
      const windows = await collectCalls(range.from, range.to);
      if (mine !== this.latest) return;
      this.loaded = { ...range, windows: windows.map(model.placed) };
      done();
    });
  }

  /** Returns the windows in view; empty if there would be too many calls.
   * @param {TimelineView} view */
  inView(view) {
    const { from, to } = timesInView(view);
    if (!this.loaded || eventsIn(from, to).events > MOST_EVENTS) return [];
    return this.loaded.windows.filter((window) => window.u1 > view.u0 && window.u0 < view.u1);
  }
}
/** Says below the timeline what is in view.
 * @param {TimelineView} view */
export const describeView = (view) => {
  const { from, to } = timesInView(view), { events, here } = eventsIn(from, to), { hidden } = view;
  const clock = data.exact ? " of virtual time" : "";
  /** @type {(string | Node)[]} */
  const words = [`In view: ${formatTime(view.u1 - view.u0)}${clock} from ${moment(from)}. `];
  if (state.profile !== "a") {
    words.push("This is the first profile's timeline; selections are off while two are shown. ");
  }
  if (events > MOST_EVENTS) words.push("Zoom in for single calls. ");
  else if (!here) {
    const command = make("code", {}, "kerntune view " + data.id);
    words.push("The single calls of this stretch are not on the page; ", command, " shows them. ");
  }
  const threads = hidden === 1 ? " thread" : " threads";
  if (hidden > 0) words.push(grouped(hidden) + threads + " did nothing here. ");
  byId("time-status").replaceChildren(...words);
};
