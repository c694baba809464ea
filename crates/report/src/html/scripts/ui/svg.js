// @ts-check
// SVG elements in pixels.
const LEAST_WIDTH = 320;

/** @param {string} name @param {Record<string, string | number>} [attributes]
 * @param {string} [text] */
export const makeSvg = (name, attributes = {}, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
};
/** Empties a picture, sets its height, and returns its width.
 * @param {SVGSVGElement} svg @param {number} height */
export const clearSvg = (svg, height) => {
  const width = Math.max(LEAST_WIDTH, svg.clientWidth || Number(svg.parentElement?.clientWidth));
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.style.height = height + "px";
  svg.replaceChildren();
  return width;
};
