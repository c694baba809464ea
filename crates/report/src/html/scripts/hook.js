// @ts-check
// What measurements from outside (scripts/check-page) ask and do: `window.kerntune`.
import { data, nameOf } from "./core/data.js";
import { rawTree } from "./core/raw.js";
import { children } from "./core/tree.js";
import { wordOf } from "./core/words.js";
import { timeline } from "./timeline/timeline.js";
import { chunks } from "./trace/chunks.js";
import { source } from "./core/source.js";
import { link, set, state } from "./ui/state.js";
import { shownTrees } from "./ui/trees.js";
import { shown } from "./ui/view.js";
import { pending, settled } from "./ui/work.js";
import { shownCode } from "./views/code.js";

export const hook = {
  data, state, set, link, source, chunks, children, settled, raw: rawTree, name: nameOf, worded: wordOf,
  /** @type {((node: number) => void) | null} */
  icicleZoom: null,
  get view() { return shown.view; },
  get sides() { return shown.sides; },
  get shownAt() { return shown.at; },
  get trees() { return shownTrees(); },
  get working() { return pending.count; },
  get codeShown() { return shownCode(); },
  get timeModel() { return timeline.view?.model; },
  timeView: () => {
    const { view } = timeline;
    return view && { u0: view.u0, u1: view.u1, left: view.left, calls: view.drawn.length };
  },
  /** @param {number} u0 @param {number} u1 */
  timeShow: (u0, u1) => timeline.actions?.show(u0, u1),
  /** @param {number} u0 @param {number} u1 */
  timeSelect: (u0, u1) => timeline.actions?.select(u0, u1),
};
