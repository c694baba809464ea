"use strict";
// Names shared by all scripts of the page.
const kt = {};
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
root.dataset.errors = "0";
window.addEventListener("error", (event) => {
  root.dataset.errors = String(Number(root.dataset.errors) + 1);
  root.dataset.error = event.message + " at line " + event.lineno;
});
window.addEventListener("unhandledrejection", (event) => {
  root.dataset.errors = String(Number(root.dataset.errors) + 1);
  root.dataset.error = String(event.reason);
});
// Creates an element with attributes and content; content is always text or elements, never markup.
kt.make = (name, attributes = {}, ...content) => {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in element && typeof value !== "string") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...content);
  return element;
};
