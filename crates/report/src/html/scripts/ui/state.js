// @ts-check
// State of the page. All of it is in the address, so that views can be linked and Back works.
import { data, nameOf } from "../core/data.js";
import { amount, formatCount, withUnit } from "../core/format.js";
import { formatOperations, parseOperations } from "../core/words.js";
import { root } from "./dom.js";

/** @type {PageState} */
export const state = {
  region: 0, fn: -1, weight: "0", mode: "down", show: "flame", zoom: "", from: null, to: null, sel: null,
  ops: "", q: "",
  profile: "a", sort: "", tab: "calls",
};
// `isReady`: all views are there; `isRestoring`: the state follows the address and is not written
// to it.
const progress = { isReady: false, isRestoring: false };
const SAVE_AFTER_MS = 250;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let saving;

/** @type {{ keys: string[], act: () => void }[]} */
const listeners = [];
/** Calls `act` when one of the keys changes: parts of the state, or "view" and "trees" for what is
 * shown, which depends on all.
 * @param {string[]} keys @param {() => void} act */
export const on = (keys, act) => listeners.push({ keys, act });
/** @param {string[]} changed */
export const fire = (changed) => {
  for (const { keys, act } of listeners) if (keys.some((key) => changed.includes(key))) act();
};
// These change with every movement: they replace the address without a step of history.
const PASSING = ["from", "to", "q"];
/** @param {Partial<PageState>} change */
export const set = (change) => {
  const keys = /** @type {(keyof PageState)[]} */ (Object.keys(change));
  const changed = keys.filter((key) => state[key] !== change[key]);
  if (changed.length === 0) return;
  const isStep = !changed.every((key) => PASSING.includes(key));
  if (isStep) save(true);
  Object.assign(state, change);
  // Immediately, so that Forward finds the step even if Back comes right after it.
  if (isStep) save(false);
  fire(changed);
  clearTimeout(saving);
  saving = setTimeout(() => save(false), SAVE_AFTER_MS);
};
export const link = () => {
  const words = new URLSearchParams();
  /** @param {string} key @param {string | null} value @param {string} [unless] */
  const put = (key, value, unless = "") => {
    if (value !== unless && value !== null) words.set(key, value);
  };
  put("region", data.views[state.region].name);
  if (state.fn >= 0) words.set("fn", nameOf(state.fn));
  put("weight", state.weight, "0");
  put("mode", state.mode, "down");
  put("show", state.show, "flame");
  put("zoom", state.zoom);
  if (state.from !== null) words.set("time", Math.round(state.from) + "-" + Math.round(Number(state.to)));
  put("sel", state.sel);
  put("ops", state.ops);
  put("q", state.q);
  put("profile", state.profile, "a");
  put("sort", state.sort);
  put("tab", state.tab, "calls");
  put("theme", root.dataset.theme || null);
  return "#" + words;
};
/** Writes the state to the address. Before a step of history is added, pending changes are written
 * to the current one.
 * @param {boolean} isStep */
export const save = (isStep) => {
  if (!data.views || progress.isRestoring) return;
  history.replaceState(null, "", link());
  if (isStep) history.pushState(null, "", link());
};
/** Reads the state from the address. @returns {PageState} */
export const restored = () => {
  const words = new URLSearchParams(location.hash.slice(1));
  /** @template {string} T @param {string} key @param {T[]} values */
  const one = (key, values) => values.find((value) => value === words.get(key)) ?? values[0];
  const region = data.views.findIndex((view) => view.name === words.get("region"));
  const fn = data.names.indexOf(words.get("fn") ?? "");
  /** @param {string} key */
  const span = (key) => {
    const [a, b] = (words.get(key) || "").split("-").map(Number);
    return b > a ? [a, b] : null;
  };
  const time = span("time"), sel = span("sel"), theme = words.get("theme");
  if (theme === "dark" || theme === "light") root.dataset.theme = theme;
  return {
    region: region < 0 ? 0 : region,
    fn: fn >= 0 ? fn : data.names.length > 0 ? 0 : -1,
    weight: one("weight", weights().map((weight) => weight.id)),
    mode: one("mode", ["down", "up", "from", "to"]),
    show: one("show", ["flame", "table"]),
    zoom: words.get("zoom") || "",
    from: time && time[0],
    to: time && time[1],
    sel: sel && sel.join("-"),
    ops: words.get("ops") || "",
    q: words.get("q") || "",
    profile: data.other ? one("profile", ["a", "b", "both", "diff"]) : "a",
    sort: words.get("sort") || "",
    tab: one("tab", ["calls", "histogram", "source"]),
  };
};
window.addEventListener("popstate", () => {
  if (!progress.isReady) return;
  clearTimeout(saving);
  progress.isRestoring = true;
  try {
    set(restored());
  } finally {
    progress.isRestoring = false;
  }
  clearTimeout(saving);
});
export const isRestoring = () => progress.isRestoring;
// From now on, Back and Forward change the state.
export const followHistory = () => { progress.isReady = true; };

export const selection = () => (state.sel ? state.sel.split("-").map(Number) : null);
export const operations = () => parseOperations(state.ops);
/** @param {PathOperation[]} list */
export const setOperations = (list) => set({ ops: formatOperations(list) });
/** @param {string} what @param {number} f */
export const addOperation = (what, f) =>
  setOperations([...operations().filter(([w, g]) => !(w === what && g === f)), [what, f]]);

/** Returns the weights that the width of a frame can stand for. */
export const weights = () => {
  /** @type {Weight[]} */
  const all = [
    { id: "0", column: 0, title: data.exact ? "instructions" : "time", unit: withUnit, bare: amount },
  ];
  if (!data.weights) return all;
  /** @param {number} column @param {string} title @param {string} word */
  const counted = (column, title, word) => {
    const unit = (/** @type {number} */ n) => formatCount(n) + " " + word;
    all.push({ id: String(column), column, title, unit, bare: formatCount });
  };
  counted(1, "taken branches", "branches");
  counted(2, "L1I misses (model)", "L1I misses");
  counted(3, "iTLB misses (model)", "iTLB misses");
  return all;
};
export const weight = () => weights().find((one) => one.id === state.weight) || weights()[0];
