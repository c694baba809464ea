// @ts-check
// Light and dark, and the style's colors.
import { byId, root } from "./dom.js";
import { save } from "./state.js";

/** @type {(() => void)[]} */
const redraws = [];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => (root.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";
/** @param {string} name */
export const cssColor = (name) => getComputedStyle(root).getPropertyValue(name).trim();
/** @param {() => void} act */
export const onTheme = (act) => redraws.push(act);
const retheme = () => redraws.forEach((act) => act());

prefersDark.addEventListener("change", retheme);
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  save(false);
  retheme();
});
