// @ts-check
// Tooltip shared by all pictures: a head, and lines of name and value.
import { byId, make } from "./dom.js";

const MARGIN = 4;
const RIGHT_OF_POINTER = 14;
const BELOW_POINTER = 18;
const ABOVE_POINTER = 10;

/** @param {MouseEvent} event @param {string} head @param {Fact[]} lines */
export const showTip = (event, head, lines) => {
  const tip = byId("tip"), { clientX: x, clientY: y } = event;
  const rows = lines.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
  tip.replaceChildren(make("b", {}, head), make("dl", {}, ...rows));
  tip.hidden = false;
  const { offsetWidth: w, offsetHeight: h } = tip;
  const isLow = y + BELOW_POINTER + h > innerHeight;
  tip.style.left = Math.max(MARGIN, Math.min(x + RIGHT_OF_POINTER, innerWidth - w - 2 * MARGIN)) + "px";
  tip.style.top = (isLow ? Math.max(MARGIN, y - h - ABOVE_POINTER) : y + BELOW_POINTER) + "px";
};
export const hideTip = () => { byId("tip").hidden = true; };
window.addEventListener("scroll", hideTip, { passive: true });
window.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
