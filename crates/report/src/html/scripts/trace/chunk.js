// @ts-check
// Opening of a chunk of the trace, in the format of crates/trace.
import { decompress } from "./zstd.js";

const MAGIC = 0x4843544b;
const TWO_TO_32 = 4294967296;
// Offsets in the header.
const CPU = 4;
const EVENTS = 12;
const BEGIN = 16;
const END = 24;
const STATE_BYTES = 32;
const PAYLOAD_BYTES = 36;
const COMPRESSED_BYTES = 40;
const HEADER_BYTES = 44;

/** @param {Uint8Array} bytes */
const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
/** @param {Uint8Array} bytes @returns {OpenedChunk} */
export const openChunk = (bytes) => {
  const view = viewOf(bytes);
  /** @param {number} at */
  const word = (at) => view.getUint32(at, true);
  /** @param {number} at */
  const long = (at) => word(at) + word(at + 4) * TWO_TO_32;
  if (word(0) !== MAGIC) throw new Error("a chunk of the trace is damaged");
  const state = word(STATE_BYTES), size = state + word(PAYLOAD_BYTES);
  const end = HEADER_BYTES + word(COMPRESSED_BYTES);
  const raw = decompress(bytes.subarray(HEADER_BYTES, end), new Uint8Array(size));
  if (raw.length !== size) throw new Error("a chunk of the trace is damaged");
  const times = { begin: long(BEGIN), end: long(END) };
  return { cpu: word(CPU), events: word(EVENTS), ...times, ...opening(raw, state), raw, at: state };
};
/** Reads the state at the begin of the chunk.
 * @param {Uint8Array} raw @param {number} end @returns {ChunkOpening} */
const opening = (raw, end) => {
  const view = viewOf(raw);
  let at = 0;
  const word = () => {
    at += 4;
    return view.getUint32(at - 4, true);
  };
  const flag = () => raw[at++] === 1;
  /** @type {ChunkOpening} */
  const state = { user: flag(), waiting: [], regions: [], stacks: [] };
  for (let n = word(); n > 0; n--) {
    state.waiting.push({ cpu: word(), running: word(), user: flag(), halted: flag() });
  }
  for (let n = word(); n > 0; n--) state.regions.push(word());
  while (at < end) {
    const thread = word(), running = flag(), f = [], how = [];
    for (let n = word(); n > 0; n--) {
      f.push(word());
      how.push(raw[at++]);
    }
    state.stacks.push({ thread, running, f, how });
  }
  return state;
};
