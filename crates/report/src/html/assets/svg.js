// Creates SVG elements in pixels.
kt.svg = (name, attributes = {}, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
};
kt.sheet = (svg, height) => {
  const width = Math.max(320, svg.clientWidth || svg.parentElement.clientWidth);
  svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  svg.style.height = height + "px";
  svg.replaceChildren();
  return width;
};
