// @ts-check
// Figures of one chunk, by node and by account: only what the chunk touches is reset.
import { bucketOf } from "../core/buckets.js";
import { doubled } from "./stack.js";

/** Stride between the histograms of accounts: an upper bound of the number of buckets. */
export const BUCKETS = 256;
const NODES = 1 << 12;
const ACCOUNTS = 1 << 10;

export class ChunkFigures {
  /** @param {number} columns */
  constructor(columns) {
    this.own = Array.from({ length: columns }, () => new Float64Array(NODES));
    this.calls = new Float64Array(NODES);
    this.ended = new Float64Array(ACCOUNTS);
    this.elapsed = new Float64Array(ACCOUNTS);
    this.slowest = new Float64Array(ACCOUNTS);
    this.slowestAt = new Float64Array(ACCOUNTS);
    this.buckets = new Float64Array(ACCOUNTS * BUCKETS);
    // The chunk that touched a node or an account last.
    this.nodeEpoch = new Int32Array(NODES);
    this.accountEpoch = new Int32Array(ACCOUNTS);
    this.epoch = 0;
    /** @type {number[]} */
    this.nodes = [];
    /** @type {number[]} */
    this.accounts = [];
    /** @type {number[]} */
    this.cells = [];
  }

  begin() {
    this.epoch++;
    this.nodes = [];
    this.accounts = [];
    for (const cell of this.cells) this.buckets[cell] = 0;
    this.cells = [];
  }

  /** Makes room for a node, and resets it if the chunk has not touched it.
   * @param {number} node */
  touch(node) {
    while (node >= this.calls.length) {
      this.own = this.own.map(doubled);
      this.calls = doubled(this.calls);
      this.nodeEpoch = doubled(this.nodeEpoch);
    }
    if (this.nodeEpoch[node] === this.epoch) return;
    this.nodeEpoch[node] = this.epoch;
    this.nodes.push(node);
    this.calls[node] = 0;
    for (const column of this.own) column[node] = 0;
  }

  /** Counts a call that ended.
   * @param {number} at account @param {number} elapsed @param {number} begin */
  countEnded(at, elapsed, begin) {
    while (at >= this.ended.length) {
      this.ended = doubled(this.ended);
      this.elapsed = doubled(this.elapsed);
      this.slowest = doubled(this.slowest);
      this.slowestAt = doubled(this.slowestAt);
      this.buckets = doubled(this.buckets);
      this.accountEpoch = doubled(this.accountEpoch);
    }
    if (this.accountEpoch[at] !== this.epoch) {
      this.accountEpoch[at] = this.epoch;
      this.accounts.push(at);
      this.ended[at] = this.elapsed[at] = 0;
      this.slowest[at] = -1;
    }
    this.ended[at]++;
    this.elapsed[at] += elapsed;
    if (elapsed > this.slowest[at] || (elapsed === this.slowest[at] && begin < this.slowestAt[at])) {
      this.slowest[at] = elapsed;
      this.slowestAt[at] = begin;
    }
    const cell = at * BUCKETS + bucketOf(elapsed);
    if (this.buckets[cell]++ === 0) this.cells.push(cell);
  }

  /** Returns what the chunk touched, in columns. */
  columns() {
    /** @param {number[]} touched @param {Float64Array} column */
    const pick = (touched, column) => Float64Array.from(touched, (at) => column[at]);
    return {
      nodes: Int32Array.from(this.nodes),
      calls: pick(this.nodes, this.calls),
      own: this.own.map((column) => pick(this.nodes, column)),
      accounts: Int32Array.from(this.accounts),
      ended: pick(this.accounts, this.ended),
      elapsed: pick(this.accounts, this.elapsed),
      slowest: pick(this.accounts, this.slowest),
      at: pick(this.accounts, this.slowestAt),
      cells: Int32Array.from(this.cells),
      counts: pick(this.cells, this.buckets),
    };
  }
}
