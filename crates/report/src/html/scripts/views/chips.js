// @ts-check
// Restrictions of the view, each with a button that removes it: the selection, and operations on
// functions.
import { nameOf } from "../core/data.js";
import { formatTime, moment } from "../core/format.js";
import { byId, make } from "../ui/dom.js";
import { addOperation, on, operations, selection, set, setOperations, state } from "../ui/state.js";

/** @type {Record<string, string>} */
const WORDS = { drop: "without ", merge: "merged: ", focus: "only below " };

/** @param {string} text @param {string} label @param {() => void} undo */
const chip = (text, label, undo) => {
  const button = make("button", { type: "button", "aria-label": label, title: label }, "×");
  button.addEventListener("click", undo);
  return make("span", { class: "chip" }, text, button);
};
export const startChips = () => {
  const place = byId("chips");
  const draw = () => {
    const sel = selection(), chips = [];
    if (sel && state.profile === "a") {
      const text = "selected: " + formatTime(sel[1] - sel[0]) + " from " + moment(sel[0]);
      chips.push(chip(text, "Clear the selection (Escape in the timeline)", () => set({ sel: null })));
    }
    const list = operations();
    list.forEach(([what, f], at) => {
      const text = WORDS[what] + nameOf(f);
      chips.push(chip(text, "Undo: " + text, () => setOperations(list.filter((_, i) => i !== at))));
    });
    place.replaceChildren(...chips);
    place.hidden = chips.length === 0;
  };
  on(["sel", "ops", "profile"], draw);
  draw();
  const buttons = Object.keys(WORDS).map((what) => byId(what, HTMLButtonElement));
  for (const button of buttons) {
    button.addEventListener("click", () => { if (state.fn >= 0) addOperation(button.id, state.fn); });
  }
  const enable = () => { for (const button of buttons) button.disabled = state.fn < 0; };
  on(["fn"], enable);
  enable();
};
