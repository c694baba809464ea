// @ts-check
// Selection of time as groups of tables, like those of the document, computed from the chunks on
// the page.
import { ELSEWHERE } from "../core/codes.js";
import { data } from "../core/data.js";
import { ChunkAdder } from "./add.js";
import { chunksBetween, hasChunk, openedChunk } from "./chunks.js";
import { ChunkCounter } from "./counter.js";

const BREATHE_AFTER_MS = 25;
/** Lets the page react. @returns {Promise<unknown>} */
const breathe = () => new Promise((done) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = (event) => {
    port1.close();
    done(event);
  };
  port2.postMessage(0);
});
/** Returns a function that adds up selections; the counts of whole chunks are kept. */
export const createSelector = () => {
  const counter = new ChunkCounter(), adder = new ChunkAdder(counter.nodes);
  /** @type {Map<number, ChunkRecord>} */
  const records = new Map();
  // One chunk at a time, since the counter's tables are shared.
  let queue = Promise.resolve();
  /** @param {ChunkPlace} chunk @param {number} from @param {number} to */
  const record = (chunk, from, to) => {
    const isWhole = chunk.begin >= from && chunk.end < to;
    const known = () => (isWhole ? records.get(chunk.number) : undefined);
    const counted = () => queue.then(async () => {
      const out = known() ?? counter.count(await openedChunk(chunk), Math.max(from, chunk.begin), to);
      if (isWhole) records.set(chunk.number, out);
      return out;
    });
    const found = known();
    if (found) return found;
    const made = counted();
    queue = made.then(() => {}, () => {});
    return made;
  };
  /** @type {PageSource["select"]} */
  const select = async (from, to, isStale, progress) => {
    // A chunk without the page's regions adds nothing; one left out for lack of space would be
    // missing.
    const list = [], chunks = chunksBetween(from, to).filter((chunk) => chunk.offset !== ELSEWHERE);
    if (!chunks.every(hasChunk)) {
      throw new Error(`some of its events are not on the page; kerntune view ${data.id} has all of them`);
    }
    let since = performance.now();
    for (const chunk of chunks) {
      list.push(await record(chunk, from, to));
      if (performance.now() - since <= BREATHE_AFTER_MS) continue;
      progress(list.length / chunks.length);
      await breathe();
      if (isStale()) return null;
      since = performance.now();
    }
    return adder.add(list);
  };
  return select;
};
