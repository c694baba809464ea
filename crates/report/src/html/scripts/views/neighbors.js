// @ts-check
// Callers and callees of the selected function, by total time or by calls.
import { hasCalls } from "../core/data.js";
import { redrawWith } from "../ui/canvas.js";
import { byId } from "../ui/dom.js";
import { on, state } from "../ui/state.js";
import { afterwards, soon } from "../ui/work.js";
import { showFacts } from "./function_facts.js";
import { NeighborsPicture } from "./neighbors_picture.js";

/** @typedef {import("./neighbors_rows.js").ArcWeight} ArcWeight */

export const startNeighbors = () => {
  const svg = byId("neighbors", SVGSVGElement), select = byId("arc-weight", HTMLSelectElement);
  const label = select.closest("label");
  if (!hasCalls() && label) label.hidden = true;
  const draw = () => {
    if (state.tab === "calls") new NeighborsPicture(svg, /** @type {ArcWeight} */ (select.value)).draw();
  };
  const both = () => {
    showFacts();
    draw();
  };
  select.addEventListener("change", draw);
  on(["view"], afterwards(both));
  on(["fn", "tab"], both);
  redrawWith(svg, soon(draw));
  both();
};
