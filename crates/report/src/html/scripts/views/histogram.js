// @ts-check
// Distribution of the selected function's call times: four buckets per power of two.
import { hasCalls } from "../core/data.js";
import { redrawWith } from "../ui/canvas.js";
import { showLegend } from "../ui/color.js";
import { byId } from "../ui/dom.js";
import { on, state } from "../ui/state.js";
import { clearSvg, makeSvg } from "../ui/svg.js";
import { shown } from "../ui/view.js";
import { soon } from "../ui/work.js";
import { HistogramPicture } from "./histogram_picture.js";

export const startHistogram = () => {
  const svg = byId("histogram", SVGSVGElement), legend = byId("histogram-legend");
  const byCaller = byId("by-caller", HTMLInputElement), logarithmic = byId("log-count", HTMLInputElement);
  const draw = () => {
    if (state.tab !== "histogram") return;
    const rows = shown.view.histograms.get(state.fn) || [];
    legend.replaceChildren();
    if (rows.length === 0) {
      const text = hasCalls() ? "No call of it ended in what is shown." : "Samples do not tell single calls.";
      clearSvg(svg, 30);
      svg.append(makeSvg("text", { x: 0, y: 18, class: "quiet" }, text));
      return;
    }
    const picture = new HistogramPicture(svg, rows, byCaller.checked, logarithmic.checked);
    picture.draw();
    showLegend(legend, picture.legend());
  };
  byCaller.addEventListener("change", draw);
  logarithmic.addEventListener("change", draw);
  on(["fn", "view", "tab"], draw);
  redrawWith(svg, soon(draw));
  draw();
};
