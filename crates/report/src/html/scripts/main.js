// @ts-check
// Assembles the views. `data-ready` on the document says that all of them are drawn, `data-whole`
// that the timeline is, too.
import { data } from "./core/data.js";
import { rawTree } from "./core/raw.js";
import { startTimeline } from "./timeline/timeline.js";
import { showLegend, subsystemLegend } from "./ui/color.js";
import { byId, countError, root } from "./ui/dom.js";
import { bytesOf, inflate, textOf } from "./ui/load.js";
import { source } from "./core/source.js";
import { followHistory, on, restored, state } from "./ui/state.js";
import { startTrees } from "./ui/trees.js";
import { renewView, shown } from "./ui/view.js";
import { startCallTree } from "./views/calltree.js";
import { startChips } from "./views/chips.js";
import { startCode } from "./views/code.js";
import { startControls } from "./views/controls.js";
import { startCrumbs } from "./views/crumbs.js";
import { startHistogram } from "./views/histogram.js";
import { startIcicle } from "./views/icicle.js";
import { startNeighbors } from "./views/neighbors.js";
import { startSearch } from "./views/search.js";
import { startTable } from "./views/table.js";
import { hook } from "./hook.js";

const startTree = () => {
  if (data.groups.every((group) => rawTree(group.tree).n === 0)) {
    byId("tree").hidden = true;
    return;
  }
  hook.icicleZoom = startIcicle(byId("icicle", HTMLCanvasElement), 0);
  startIcicle(byId("icicle-second", HTMLCanvasElement), 1);
  startCrumbs();
  startCallTree();
  showLegend(byId("tree-legend"), subsystemLegend());
};
const showTimeline = () => {
  startTimeline();
  byId("time-body").hidden = false;
  byId("time-wait").hidden = true;
  root.dataset.timeMs = performance.now().toFixed(0);
};
const startAll = async () => {
  Object.assign(data, await inflate(bytesOf(textOf("kt-data"))));
  Object.assign(state, restored());
  byId("views").hidden = false;
  await renewView();
  if (!shown.view) {
    state.sel = null;
    await renewView();
  }
  on(["region", "sel", "ops", "profile"], renewView);
  startTrees();
  startControls();
  startChips();
  startTree();
  startSearch();
  byId("time").hidden = !data.time && !data.traced;
  if (data.time) showTimeline();
  startTable();
  startNeighbors();
  startHistogram();
  startCode();
  followHistory();
  root.dataset.readyMs = performance.now().toFixed(0);
  root.dataset.ready = "true";
  if (!data.time && data.traced) {
    data.time = await source.overview((text) => { byId("time-wait").textContent = text; });
    showTimeline();
    if (state.sel) renewView();
  }
  root.dataset.whole = "true";
};
/** Starts the page.
 * @param {PageSource} from where its data come from */
export const start = (from) => {
  Object.assign(source, from);
  Object.assign(window, { kerntune: hook });
  startAll().catch((error) => {
    const trouble = byId("trouble");
    countError(String(error && error.stack || error));
    trouble.textContent = "The pictures cannot be drawn: " + (error && error.message || error);
    trouble.hidden = false;
  });
};
