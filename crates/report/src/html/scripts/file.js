// @ts-check
// Entry script of a page that is a file: its data come from the page itself.
import { data } from "./core/data.js";
import { createSelector } from "./trace/select.js";
import { bytesOf, inflate, textOf } from "./ui/load.js";
import { start } from "./main.js";

// Numbers of bytes and letters in base64.
const BYTES = 3;
const LETTERS = 4;
/** @template T @param {() => T} make */
const once = (make) => {
  /** @type {T | undefined} */
  let made;
  return () => made ??= make();
};
const trace = once(() => textOf("kt-trace"));
const codes = once(() => textOf("kt-code").split("\n"));
const selector = once(createSelector);

start({
  chunk: async ({ offset, bytes }) => {
    const letters = Math.ceil(bytes / BYTES) * LETTERS;
    return bytesOf(trace().slice(offset, offset + letters)).subarray(0, bytes);
  },
  // Returns a function's code, or a sentence that says why it is missing.
  code: async (f) => {
    const at = data.code.indexOf(f);
    return at < 0 ? data.code_rest : inflate(bytesOf(codes()[at]));
  },
  select: (from, to, isStale, progress) => selector()(from, to, isStale, progress),
  overview: async () => null,
});
