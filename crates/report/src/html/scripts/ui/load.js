// @ts-check
// Unpacking of the page's data.
import { byId } from "./dom.js";

/** Decompresses a zlib stream of JSON.
 * @param {BufferSource} bytes */
export const inflate = async (bytes) => {
  if (typeof DecompressionStream === "undefined") {
    throw new Error(
      "this browser cannot unpack the page's data; Chrome 80, Firefox 113 or Safari 16.4 and later can",
    );
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};
/** @param {string} base64 */
export const bytesOf = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
/** Returns the text of an element that holds data.
 * @param {string} id */
export const textOf = (id) => String(byId(id).textContent).trim();
