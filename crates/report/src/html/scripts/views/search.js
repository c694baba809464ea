// @ts-check
// Search: matches are highlighted and counted; the buttons beside the box go to the previous and
// next one.
import { data } from "../core/data.js";
import { grouped, percent } from "../core/format.js";
import { outermost } from "../core/raw.js";
import { stepWord, wordOf } from "../core/words.js";
import { byId, closest } from "../ui/dom.js";
import { on, set, state, weight } from "../ui/state.js";
import { isDifference } from "../ui/trees.js";
import { shown } from "../ui/view.js";
import { soon } from "../ui/work.js";

const LEAST_LETTERS = 2;
const wanted = { text: "", hits: new Set() };
/** Returns a function that checks for a match; null without a search.
 * @returns {((f: number) => boolean) | null} */
export const matcher = () => {
  const text = state.q.trim().toLowerCase();
  if (text.length < LEAST_LETTERS) return null;
  if (text !== wanted.text) {
    wanted.text = text;
    wanted.hits = new Set(data.names.map((name, f) => (name.toLowerCase().includes(text) ? f : -1)));
  }
  return (f) => f >= 0 && wanted.hits.has(f);
};
/** @param {RawTree} raw @param {number} node */
const wayOf = (raw, node) => {
  const words = [];
  for (let at = node; at >= 0; at = raw.up[at]) words.push(stepWord(raw.f[at], raw.how[at]));
  return words.reverse().join(",");
};
/** Finds the matching functions and paths, and their share; time below a match counts once.
 * @param {(f: number) => boolean} isWanted */
const findMatches = (isWanted) => {
  const { column } = weight();
  const raws = isDifference() ? shown.sides.flatMap((side) => side.raws) : shown.view.raws;
  let sum = 0, whole = 0;
  /** @type {Set<number>} */
  const functions = new Set();
  /** @type {Map<string, { way: string, f: number, weight: number }>} */
  const ways = new Map();
  for (const raw of raws) {
    for (const node of raw.roots) whole += raw.sums[column][node];
    for (let node = 0; node < raw.n; node++) if (isWanted(raw.f[node])) functions.add(raw.f[node]);
    for (const node of outermost(raw, isWanted)) {
      const heavy = raw.sums[column][node], way = wayOf(raw, node), known = ways.get(way);
      sum += heavy;
      if (known) known.weight += heavy;
      else ways.set(way, { way, f: raw.f[node], weight: heavy });
    }
  }
  return { functions, ways: [...ways.values()], share: percent(sum, whole) };
};
/** @param {number} n @param {string} noun */
const counted = (n, noun) => grouped(n) + " " + noun + (n === 1 ? "" : "s");

export const startSearch = () => {
  const box = byId("search", HTMLInputElement), found = byId("found");
  const before = byId("before", HTMLButtonElement), next = byId("next", HTMLButtonElement);
  /** @type {{ way: string, f: number }[]} */
  let places = [];
  let at = -1;
  const count = () => {
    const isWanted = matcher();
    places = [];
    at = -1;
    found.textContent = "";
    if (isWanted) {
      const { functions, ways, share } = findMatches(isWanted);
      /** @param {number} f */
      const self = (f) => shown.view.functions.get(f)?.net ?? 0;
      /** @param {number} f */
      const placeOf = (f) => ({ way: state.mode === "up" ? wordOf(f) : "", f });
      places = state.mode === "down"
        ? ways.sort((a, b) => b.weight - a.weight)
        : [...functions].sort((a, b) => self(b) - self(a)).map(placeOf);
      const counts = [counted(functions.size, "function"), counted(ways.length, "path")];
      found.textContent = [...counts, share].join(", ");
    }
    before.disabled = next.disabled = places.length === 0;
  };
  /** @param {number} by */
  const step = (by) => {
    if (places.length === 0) return;
    at = (at + by + places.length) % places.length;
    const base = String(found.textContent).replace(/^.*? · /, "");
    set({ zoom: places[at].way, fn: places[at].f });
    found.textContent = grouped(at + 1) + "/" + grouped(places.length) + " · " + base;
  };
  box.value = state.q;
  box.addEventListener("input", () => set({ q: box.value }));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      box.value = "";
      set({ q: "" });
    }
    if (event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  });
  next.addEventListener("click", () => step(1));
  before.addEventListener("click", () => step(-1));
  on(["q"], () => {
    if (box.value !== state.q) box.value = state.q;
    count();
  });
  on(["view", "weight", "mode"], soon(count));
  window.addEventListener("keydown", (event) => {
    if (event.key !== "/" || closest(event, "input, select, textarea")) return;
    event.preventDefault();
    box.focus();
  });
  count();
};
