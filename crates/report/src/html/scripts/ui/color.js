// @ts-check
// Colors by subsystem: Paul Tol's "light" scheme, which is distinguishable with color vision
// deficiency and readable with black text. Nodes that are no kernel function have colors of their
// own.
import { IDLE, INTERRUPT, SMALLER, THREAD, USER } from "../core/codes.js";
import { data, fileOf, isLoaded, moduleOf, nameOf } from "../core/data.js";
import { make } from "./dom.js";

/** @type {[string, string][]} */
const SUBSYSTEMS = [
  ["net", "#77aadd"], ["fs", "#eedd88"], ["mm", "#44bb99"], ["kernel", "#bbcc33"], ["arch", "#99ddff"],
  ["drivers", "#ffaabb"], ["block", "#aaaa00"], ["lib", "#c9d3b0"], ["other", "#cfc6d6"],
  ["unknown", "#c4c9d0"],
];
const COLOR_OF = new Map(SUBSYSTEMS);
const UNKNOWN_COLOR = "#c4c9d0";
export const SPECIAL = {
  interrupt: "#ee8866", user: "#b9a6e3", thread: "#5c6773", smaller: "#9aa1aa", idle: "#8d949d",
};
export const DARK_TEXT = "#14171b";
const LIGHT_TEXT = "#ffffff";
const LESS = [77, 166, 214];
const MORE = [242, 153, 92];
const SAME = [226, 228, 231];
// Functions of a subsystem have one of seven shades.
const SHADES = 7;
const SHADE_STEP = 4;

/** @param {number} f */
const subsystem = (f) => {
  const file = fileOf(f), [top, below] = file.split("/");
  if (file.indexOf("/") <= 0) return "unknown";
  if (top === "include") {
    return below === "net" ? "net" : below === "linux" || below === "asm-generic" ? "kernel" : "other";
  }
  return COLOR_OF.has(top) && top !== "unknown" ? top : "other";
};
/** @param {number} f @param {boolean} isInterrupt */
const baseColor = (f, isInterrupt) => {
  if (isInterrupt || f === INTERRUPT) return SPECIAL.interrupt;
  if (f === USER || (moduleOf(f) && !isLoaded(f))) return SPECIAL.user;
  if (f === SMALLER) return SPECIAL.smaller;
  if (f === IDLE) return SPECIAL.idle;
  if (f <= THREAD) return SPECIAL.thread;
  return COLOR_OF.get(f >= 0 ? subsystem(f) : "unknown") ?? UNKNOWN_COLOR;
};
/** @param {number} f */
const shadeOf = (f) => {
  if (f < 0) return 0;
  let hash = 0;
  for (const c of nameOf(f)) hash = (hash * 31 + Number(c.codePointAt(0))) >>> 0;
  return (hash % SHADES - (SHADES - 1) / 2) * SHADE_STEP;
};
/** @type {Map<number, string>} */
const known = new Map();
/** Returns the color of a function; `how` makes the first frame of an interrupt visible.
 * @param {number} f @param {string} how */
export const colorOf = (f, how) => {
  const isInterrupt = how === "interrupt", key = f * 2 + (isInterrupt ? 1 : 0);
  let color = known.get(key);
  if (color) return color;
  const base = baseColor(f, isInterrupt), shade = shadeOf(f);
  /** @param {number} at */
  const part = (at) => Math.max(0, Math.min(255, parseInt(base.slice(at, at + 2), 16) + shade));
  color = "rgb(" + part(1) + "," + part(3) + "," + part(5) + ")";
  known.set(key, color);
  return color;
};
/** Returns the color of a change: less is blue and better, more is orange and worse.
 * @param {number} part from -1 (gone) to 1 (new) */
export const changeColor = (part) => {
  const by = Math.min(1, Math.sqrt(Math.abs(part))), to = part < 0 ? LESS : MORE;
  return "rgb(" + SAME.map((from, i) => Math.round(from + (to[i] - from) * by)).join(",") + ")";
};
/** Returns the color of text on a frame: black on all but the darkest colors.
 * @param {number} f */
export const textColor = (f) => (f <= THREAD ? LIGHT_TEXT : DARK_TEXT);
/** @param {string} color */
export const swatch = (color) => {
  const element = make("i");
  element.style.background = color;
  return element;
};
/** Fills a legend.
 * @param {Element} place @param {string[][]} rows name and color */
export const showLegend = (place, rows) =>
  place.replaceChildren(...rows.map(([name, color]) => make("span", {}, swatch(color), name)));
// Returns the rows of the subsystems that occur.
export const subsystemLegend = () => {
  const found = new Set(data.names.map((_, f) => (moduleOf(f) && !isLoaded(f) ? "" : subsystem(f))));
  const rows = SUBSYSTEMS.filter(([name]) => found.has(name));
  const named = rows.map(([name, color]) => [name === "unknown" ? "no source path" : name, color]);
  return [...named, ["interrupt", SPECIAL.interrupt], ["user", SPECIAL.user]];
};
