// @ts-check
// Elements of the page, and the count of scripts' errors on its root element.
export const root = document.documentElement;
root.dataset.errors = "0";
/** @param {string} text */
export const countError = (text) => {
  root.dataset.errors = String(Number(root.dataset.errors) + 1);
  root.dataset.error = text;
};
window.addEventListener("error", (event) => countError(event.message + " at line " + event.lineno));
window.addEventListener("unhandledrejection", (event) => countError(String(event.reason)));

/** @template {Element} [T=HTMLElement]
 * @param {string} id @param {new () => T} [type] @returns {T} */
export const byId = (id, type) => {
  const found = document.getElementById(id);
  if (!found || (type && !(found instanceof type))) throw new Error("the page has no " + id);
  return /** @type {any} */ (found);
};
/** Creates an element with attributes and content; content is always text or elements, never markup.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {Record<string, string | number | boolean>} [attributes]
 * @param {...(Node | string)} content */
export const make = (name, attributes = {}, ...content) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value !== "string" && key in element) Object.assign(element, { [key]: value });
    else element.setAttribute(key, String(value));
  }
  element.append(...content);
  return element;
};
/** Returns the closest element around an event's target that `selector` names.
 * @template {Element} [T=HTMLElement]
 * @param {Event} event @param {string} selector @returns {T | null} */
export const closest = (event, selector) => {
  const { target } = event;
  return target instanceof Element ? target.closest(selector) : null;
};
/** Checks whether a key event is a shortcut of the browser.
 * @param {KeyboardEvent} event */
export const isShortcut = (event) => event.ctrlKey || event.metaKey || event.altKey;
