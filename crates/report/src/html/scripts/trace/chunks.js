// @ts-check
// Chunks of the trace: their places, and those that were unpacked last.
import { LEFT_OUT } from "../core/codes.js";
import { data } from "../core/data.js";
import { source } from "../core/source.js";
import { openChunk } from "./chunk.js";

const KEPT = 8;
/** @type {ChunkPlace[] | null} */
let known = null;
export const chunks = () => {
  if (known || !data.time) return known || [];
  const { b, e, n, o, l } = data.time.chunks;
  known = [];
  for (let i = 0, at = 0; i < b.length; i++) {
    const begin = at + b[i];
    at = begin + e[i];
    known.push({ number: i, begin, end: at, events: n[i], offset: o[i], bytes: l[i] });
  }
  return known;
};
/** @param {ChunkPlace} chunk */
export const hasChunk = (chunk) => chunk.offset > LEFT_OUT;
/** @param {number} from @param {number} to */
export const chunksBetween = (from, to) => chunks().filter((chunk) => chunk.end >= from && chunk.begin < to);
/** @type {Map<number, OpenedChunk>} */
const kept = new Map();
/** @param {ChunkPlace} chunk @returns {Promise<OpenedChunk>} */
export const openedChunk = async (chunk) => {
  const found = kept.get(chunk.number);
  if (found) return found;
  const opened = openChunk(await source.chunk(chunk));
  kept.set(chunk.number, opened);
  if (kept.size > KEPT) kept.delete(Number(kept.keys().next().value));
  return opened;
};
