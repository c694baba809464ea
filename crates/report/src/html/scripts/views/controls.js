// @ts-check
// Choices at the top of the page, and tabs.
import { data } from "../core/data.js";
import { amount, formatChange, formatTime, grouped, unitName, verdict, withUnit } from "../core/format.js";
import { byId, make } from "../ui/dom.js";
import { on, set, state, weights } from "../ui/state.js";
import { shown } from "../ui/view.js";

/** Creates a list of tabs: one is selected, arrow keys move to the next.
 * @param {string} list @param {"show" | "tab"} key */
const tabs = (list, key) => {
  const buttons = /** @type {HTMLButtonElement[]} */ ([...byId(list).querySelectorAll("[role=tab]")]);
  const follow = () => {
    for (const button of buttons) {
      const isChosen = button.dataset.value === state[key];
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
      byId(String(button.getAttribute("aria-controls"))).hidden = !isChosen;
    }
  };
  for (const button of buttons) {
    button.addEventListener("click", () => set({ [key]: button.dataset.value }));
    button.addEventListener("keydown", (event) => {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (by === 0) return;
      const there = buttons.filter((b) => !b.hidden);
      const next = there[(there.indexOf(button) + by + there.length) % there.length];
      set({ [key]: next.dataset.value });
      next.focus();
    });
  }
  on([key], follow);
  follow();
};
/** Creates a choice that follows a part of the state; hidden if there is nothing to choose.
 * @param {HTMLSelectElement} select @param {"region" | "weight" | "mode" | "profile"} key
 * @param {(value: string) => Partial<PageState>} change
 * @param {string[][]} [rows] value and text */
const choice = (select, key, change, rows) => {
  if (rows) {
    select.append(...rows.map(([value, text]) => make("option", { value }, text)));
    const label = select.closest("label");
    if (label) label.hidden = rows.length < 2;
  }
  const follow = () => { select.value = String(state[key]); };
  on([key], follow);
  follow();
  select.addEventListener("change", () => set(change(select.value)));
};
const WIDTH_OF_DIFFERENCE =
  " Width: both together. Blue: less in the second (better); orange: more (worse). Each function is as its" +
  " kernel was compiled; kerntune report diff shows what only one has inlined as its caller.";
// Says what is compared; nothing is scaled.
const pairNote = () => {
  const note = byId("pair-note"), { profile } = state, { other } = data;
  const isBoth = profile === "both", isDiff = profile === "diff";
  note.hidden = !isBoth && !isDiff;
  byId("first-label").textContent = isBoth ? "first: " + data.label : "";
  byId("second-label").textContent = isBoth && other ? "second: " + other.label : "";
  byId("figures").className = isBoth ? "figures two" : "figures";
  byId("tree-legend").hidden = isDiff;
  if (note.hidden || !other) return;
  const [a, b] = shown.sides.map((side) => side.about.busy), word = verdict(b - a);
  const [first, second] = [data, other].map(({ operations }) => grouped(operations));
  const numbers = `The first did ${first} operations, the second ${second}`;
  note.replaceChildren(
    `Busy ${unitName()}: ${amount(a)} → ${amount(b)}, `,
    make("b", { class: word }, `${formatChange(a, b)} ${word}`),
    "." + (isDiff ? WIDTH_OF_DIFFERENCE : ""),
    data.operations === other.operations ? "" : ` ${numbers}: nothing is scaled.`,
  );
};
const facts = () => {
  const { busy, idle, user } = shown.view.about;
  const rest = idle > 0 ? `, ${formatTime(idle)} idle` : "";
  byId("whole").textContent = `${withUnit(busy)} busy (${amount(user)} in user code)${rest}`;
};
export const startControls = () => {
  const regions = data.views.map((view, at) => [String(at), view.name === null ? "all regions" : view.name]);
  choice(byId("region", HTMLSelectElement), "region", (value) => ({ region: Number(value) }), regions);
  const widths = weights().map((one) => [one.id, one.title]);
  choice(byId("weight", HTMLSelectElement), "weight", (value) => ({ weight: value }), widths);
  choice(byId("mode", HTMLSelectElement), "mode", (value) =>
    ({ mode: /** @type {TreeMode} */ (value), zoom: "" }));
  const sides = data.other
    ? [
      ["a", "first: " + data.label], ["b", "second: " + data.other.label], ["both", "both, side by side"],
      ["diff", "difference"],
    ]
    : [["a", ""]];
  choice(byId("profile", HTMLSelectElement), "profile", (value) =>
    ({ profile: /** @type {PageState["profile"]} */ (value), zoom: "", sel: null }), sides);
  for (const act of [pairNote, facts]) {
    on(["view"], act);
    act();
  }
  tabs("shows", "show");
  tabs("one-tabs", "tab");
};
