// @ts-check
// Path to the zoomed node.
import { nameOf } from "../core/data.js";
import { pathTo } from "../core/tree.js";
import { follow, wayTo } from "../core/words.js";
import { byId, make } from "../ui/dom.js";
import { on, set, state } from "../ui/state.js";
import { shownTrees, titleOf } from "../ui/trees.js";

/** @type {Record<string, string>} */
const WHOLE = { down: "all paths", up: "all functions, upside down" };

export const startCrumbs = () => {
  const place = byId("crumbs");
  const draw = () => {
    const tree = shownTrees()[0], zoom = follow(tree, state.zoom);
    /** @param {string} text @param {number} node */
    const crumb = (text, node) => {
      const button = make("button", { type: "button" }, text);
      button.addEventListener("click", () => set({ zoom: wayTo(tree, node) }));
      return button;
    };
    const path = zoom < 0 ? [] : pathTo(tree, zoom);
    const whole = crumb(WHOLE[state.mode] || nameOf(state.fn), -1);
    place.replaceChildren(whole, ...path.flatMap((node) => ["›", crumb(titleOf(tree, node), node)]));
  };
  on(["trees", "zoom"], draw);
  draw();
};
