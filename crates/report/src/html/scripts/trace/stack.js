// @ts-check
// Open frames of a thread: function, kind of entry, and the visitor's value of each. A segment
// begins at each frame that an interrupt entered; its clock belongs to the visitor.
import { INTERRUPTED } from "../core/codes.js";

const FRAMES = 64;
const SEGMENTS = 16;

/** Returns a copy with twice the room.
 * @template {Int32Array | Uint8Array | Float64Array} T @param {T} array @returns {T} */
export const doubled = (array) => {
  const Type = /** @type {new (length: number) => T} */ (array.constructor);
  const wider = new Type(array.length * 2);
  wider.set(array);
  return wider;
};

export class Stack {
  constructor() {
    this.depth = 0;
    this.segment = 0;
    this.interrupts = 0;
    /** Number of frames that were open before. */
    this.base = 0;
    // For the visitor: the change of regions for which `node` and `root` are valid.
    this.stamp = -1;
    this.root = -1;
    this.segments = new Float64Array(SEGMENTS);
    this.f = new Int32Array(FRAMES);
    this.how = new Uint8Array(FRAMES);
    this.begin = new Float64Array(FRAMES);
    // For the visitor: the frame's node, and its segment's clock when it began.
    this.node = new Int32Array(FRAMES);
    this.clock = new Float64Array(FRAMES);
  }

  /** @param {number} f @param {number} how @param {number} begin */
  push(f, how, begin) {
    if (this.depth === this.f.length) {
      this.f = doubled(this.f);
      this.how = doubled(this.how);
      this.begin = doubled(this.begin);
      this.node = doubled(this.node);
      this.clock = doubled(this.clock);
    }
    if (how === INTERRUPTED) {
      this.interrupts++;
      if (++this.segment === this.segments.length) this.segments = doubled(this.segments);
      this.segments[this.segment] = 0;
    }
    const at = this.depth++;
    this.f[at] = f;
    this.how[at] = how;
    this.node[at] = 0;
    this.clock[at] = this.segments[this.segment];
    this.begin[at] = begin;
  }

  /** Returns what each open frame has taken. */
  portions() {
    const portions = [];
    for (let i = 0, segment = 0; i < this.depth; i++) {
      if (this.how[i] === INTERRUPTED) segment++;
      portions.push(this.segments[segment] - this.clock[i]);
    }
    return portions;
  }
}
