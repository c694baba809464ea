// @ts-check
// Words for functions and paths in the address, by which a link or another tree finds them again:
// function numbers differ between pages.
import { THREAD } from "./codes.js";
import { data, nameOf } from "./data.js";
import { children } from "./tree.js";

/** @param {string} text @param {RegExp} special */
const escape = (text, special) => text.replace(special, (c) => "%" + c.charCodeAt(0).toString(16));
/** @param {number} f */
export const wordOf = (f) => {
  if (f >= 0) return escape(nameOf(f), /[;,:%!~]/g);
  if (f <= THREAD) return "~" + escape(encodeURIComponent(data.comms[THREAD - f]), /[!~]/g);
  return "!" + -f;
};
/** @type {Map<string, number> | null} */
let byName = null;
/** Returns the function of a word; undefined if there is none.
 * @param {string} word */
export const numberOf = (word) => {
  if (word.startsWith("!")) return -Number(word.slice(1));
  let name;
  try {
    name = decodeURIComponent(word);
  } catch {
    return undefined;
  }
  if (name.startsWith("~")) {
    const at = data.comms.indexOf(name.slice(1));
    return at < 0 ? undefined : THREAD - at;
  }
  if (!byName) {
    byName = new Map();
    for (const [f, known] of data.names.entries()) if (!byName.has(known)) byName.set(known, f);
  }
  return byName.get(name);
};
/** @param {number} f @param {number} how */
export const stepWord = (f, how) => wordOf(f) + (how ? ":" + how : "");
/** Returns the path to a node in words.
 * @param {ShownTree} tree @param {number} node */
export const wayTo = (tree, node) => {
  const words = [];
  for (let at = node; at >= 0; at = tree.parent[at]) words.push(stepWord(tree.f[at], tree.how[at]));
  return words.reverse().join(",");
};
/** Returns the node of a path, as far as the tree has it.
 * @param {ShownTree} tree @param {string} way */
export const follow = (tree, way) => {
  let node = -1;
  for (const word of way ? way.split(",") : []) {
    const [name, how] = word.split(":"), f = numberOf(name);
    const next = children(tree, node, 0).find((at) => tree.f[at] === f && tree.how[at] === Number(how || 0));
    if (next === undefined) break;
    node = next;
  }
  return node;
};
/** Parses operations on the paths.
 * @param {string} text @returns {PathOperation[]} */
export const parseOperations = (text) => {
  /** @type {PathOperation[]} */
  const found = [];
  for (const word of text.split(";").filter(Boolean)) {
    const at = word.indexOf(":"), what = word.slice(0, at), f = numberOf(word.slice(at + 1));
    if (["drop", "merge", "focus"].includes(what) && f !== undefined) found.push([what, f]);
  }
  return found;
};
/** @param {PathOperation[]} operations */
export const formatOperations = (operations) =>
  operations.map(([what, f]) => what + ":" + wordOf(f)).join(";");
