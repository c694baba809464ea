// @ts-check
// Facts of the selected function, above its panels.
import { fileOf, hasCalls, isSampled, moduleOf, nameOf, samplingError } from "../core/data.js";
import { amount, grouped, moment, percent, unitName } from "../core/format.js";
import { timeline } from "../timeline/timeline.js";
import { byId, make } from "../ui/dom.js";
import { state } from "../ui/state.js";
import { shown } from "../ui/view.js";

/** @param {FunctionRow} row */
const callsOf = (row) => {
  if (!hasCalls()) return [];
  const isWhole = row.derived || row.ended === row.calls;
  return [grouped(row.calls) + " calls" + (isWhole ? "" : " (" + grouped(row.ended) + " ended)")];
};
/** @param {FunctionRow} row */
const textOf = (row) => {
  const { busy } = shown.view.about, error = isSampled() ? " ± " + amount(samplingError(row.net)) : "";
  const whole = `${unitName()} in all ${amount(row.elapsed)} (${percent(row.elapsed, busy)} of busy)`;
  const self = `self ${amount(row.net)}${error} (${percent(row.net, busy)})`;
  const origin = moduleOf(row.f) || fileOf(row.f) || "source path not known";
  return [origin, ...callsOf(row), whole, self].join(" · ");
};
/** @param {FunctionRow} row */
const buttonTo = (row) => {
  const button = make("button", { type: "button" }, "show in timeline");
  button.addEventListener("click", () => {
    timeline.showCall?.(row.f, row.at, row.at + row.slowest);
    byId("time").scrollIntoView({ block: "start" });
  });
  return button;
};
export const showFacts = () => {
  const { fn } = state, row = shown.view.functions.get(fn), place = byId("one-facts");
  byId("one-name").textContent = fn < 0 ? "No function chosen" : nameOf(fn);
  if (!row) {
    place.textContent = "Not called in what is shown.";
    return;
  }
  place.replaceChildren(textOf(row));
  if (row.slowest < 0) return;
  place.append(` · slowest call ${amount(row.slowest)} at ${moment(row.at)} `);
  if (timeline.showCall && state.profile === "a") place.append(buttonTo(row));
};
