// @ts-check
// Computes what is shown from the state: profile, region, selection, and operations on the paths.
// Views redraw when "view" is signaled.
import { data } from "../core/data.js";
import { percent } from "../core/format.js";
import { applyOperations, rawTree } from "../core/raw.js";
import { tablesFrom, tablesOf } from "../core/tables.js";
import { root } from "./dom.js";
import { source } from "../core/source.js";
import { fire, operations, selection, set, state } from "./state.js";
import { say, tracked } from "./work.js";

const SAY_AFTER_MS = 150;
const ADDING = "adding up the selection …";
/** What is shown: one side, or one for each profile; when it was computed. */
export const shown = {
  view: /** @type {ProfileSide} */ (/** @type {unknown} */ (null)),
  sides: /** @type {ProfileSide[]} */ ([]),
  at: 0,
};
let latest = 0;
let answered = { sel: "", found: /** @type {SelectionTables | null} */ (null) };

/** @param {Group[]} groups @param {RegionView} about @returns {ProfileSide} */
const sideOf = (groups, about) => {
  const list = operations();
  const raws = groups.map((group) => applyOperations(rawTree(group.tree), list)).filter((raw) => raw.n > 0);
  return { ...tablesOf(groups), about, raws, ...(list.length > 0 ? tablesFrom(raws) : {}) };
};
const view = () => data.views[state.region];
const firstSide = () => sideOf(view().groups.map((g) => data.groups[g]), view());
// The second profile's region of the same name.
const secondSide = () => {
  const { views, groups } = /** @type {SecondProfile} */ (data.other);
  const found = views.find((other) => other.name === view().name);
  if (!found) return sideOf([], { ...view(), busy: 0, idle: 0, user: 0, elapsed: 0 });
  return sideOf(found.groups.map((g) => groups[g]), found);
};
/** @param {SelectionTables} found */
const selectedSide = (found) => {
  /** @param {number} i */
  const sum = (i) => view().groups.reduce((all, g) => all + (found.times[g]?.[i] ?? 0), 0);
  const about = { ...view(), busy: sum(0), idle: sum(1), user: sum(2), elapsed: sum(0) + sum(1) };
  return sideOf(view().groups.map((g) => found.groups[g]), about);
};
/** @param {ProfileSide[]} sides @param {number} began */
const show = (sides, began) => {
  shown.sides = sides;
  // Shares of a difference refer to the first profile.
  shown.view = sides[state.profile === "b" ? 1 : 0];
  fire(["view"]);
  shown.at = performance.now();
  root.dataset.viewMs = (shown.at - began).toFixed(1);
};
/** @param {number[]} sel @param {() => boolean} isStale */
const ask = async (sel, isStale) => {
  const late = setTimeout(() => { if (!isStale()) say(ADDING); }, SAY_AFTER_MS);
  /** @param {number} part */
  const progress = (part) => { if (!isStale()) say(ADDING + " " + percent(part, 1)); };
  try {
    return await source.select(sel[0], sel[1], isStale, progress);
  } catch (error) {
    if (!isStale()) {
      // A view of another stretch must not be mistaken for the selection.
      set({ sel: null });
      say("The selection cannot be added up: " + /** @type {Error} */ (error).message);
    }
    return null;
  } finally {
    clearTimeout(late);
  }
};
const compute = async () => {
  const mine = ++latest, sel = selection(), began = performance.now(), isStale = () => mine !== latest;
  if (state.profile !== "a" || !sel) {
    say("");
    show(state.profile === "a" ? [firstSide()] : [firstSide(), secondSide()], began);
    return;
  }
  const key = String(state.sel), found = answered.sel === key ? answered.found : await ask(sel, isStale);
  if (isStale() || !found) return;
  answered = { sel: key, found };
  say("");
  show([selectedSide(found)], began);
};
export const renewView = () => tracked(compute);
