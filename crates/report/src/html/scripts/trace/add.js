// @ts-check
// Adds up the counts of chunks and renders them as tables. Calls that span chunks are joined.
import { bucketOf } from "../core/buckets.js";
import { data } from "../core/data.js";
import { indexed } from "../core/raw.js";
import { columnCount } from "./counter.js";
import { BUCKETS } from "./figures.js";

/** Call that is open between two chunks: what it took so far, and its begin; null if it began before
 * the first.
 * @typedef {{ elapsed: number, begin: number } | null} BoundaryCall */

/** Sums by node, account and cell. */
class Sums {
  /** @param {number} nodes @param {number} accounts @param {Float64Array} cells */
  constructor(nodes, accounts, cells) {
    this.own = Array.from({ length: columnCount() }, () => new Float64Array(nodes));
    this.calls = new Float64Array(nodes);
    this.ended = new Float64Array(accounts);
    this.elapsed = new Float64Array(accounts);
    this.slowest = new Float64Array(accounts).fill(-1);
    this.at = new Float64Array(accounts);
    this.cells = cells;
    /** @type {number[]} */
    this.touched = [];
    this.times = data.groups.map(() => [0, 0, 0]);
  }

  /** @param {number} cell @param {number} count */
  put(cell, count) {
    if (this.cells[cell] === 0) this.touched.push(cell);
    this.cells[cell] += count;
  }

  /** Adds calls that ended, given the slowest of them.
   * @param {number} a account @param {number} count @param {number} elapsed @param {number} slowest
   * @param {number} at */
  end(a, count, elapsed, slowest, at) {
    this.ended[a] += count;
    this.elapsed[a] += elapsed;
    if (slowest > this.slowest[a] || (slowest === this.slowest[a] && at < this.at[a])) {
      this.slowest[a] = slowest;
      this.at[a] = at;
    }
  }

  /** @param {ChunkRecord} r */
  record(r) {
    for (let i = 0; i < r.nodes.length; i++) {
      const node = r.nodes[i];
      this.calls[node] += r.calls[i];
      this.own.forEach((column, c) => { column[node] += r.own[c][i]; });
    }
    for (let i = 0; i < r.accounts.length; i++) {
      this.end(r.accounts[i], r.ended[i], r.elapsed[i], r.slowest[i], r.at[i]);
    }
    for (let i = 0; i < r.cells.length; i++) this.put(r.cells[i], r.counts[i]);
    for (const [group, times] of r.times) times.forEach((time, i) => { this.times[group][i] += time; });
  }

  /** Joins calls that are open at the chunk's begin: known from the previous chunk, or cut.
   * @param {ChunkRecord} r @param {BoundaryCall[][]} stacks
   * @returns {BoundaryCall[][]} those open at its end */
  join(r, stacks) {
    for (const [thread, account, elapsed] of r.inherited) {
      const open = stacks[thread].pop();
      if (!open || account < 0) continue;
      const whole = open.elapsed + elapsed;
      this.end(account, 1, whole, whole, open.begin);
      this.put(account * BUCKETS + bucketOf(whole), 1);
    }
    return r.left.map(({ carried, portions, begins }, thread) => portions.map((elapsed, i) => {
      if (i >= carried) return { elapsed, begin: begins[i - carried] };
      const open = stacks[thread][i];
      return open ? { elapsed: open.elapsed + elapsed, begin: open.begin } : null;
    }));
  }
}

export class ChunkAdder {
  /** @param {CallTreeNodes} nodes */
  constructor(nodes) {
    this.nodes = nodes;
    // All zero between selections.
    this.cells = new Float64Array(0);
  }

  /** @param {ChunkRecord[]} list contiguous, or with gaps in which no call goes on
   * @returns {SelectionTables} */
  add(list) {
    const { n, accounts } = this.nodes;
    if (this.cells.length < accounts.n * BUCKETS) this.cells = new Float64Array(accounts.n * BUCKETS);
    const sums = new Sums(n, accounts.n, this.cells);
    /** @type {BoundaryCall[][]} */
    let stacks = [];
    let last = -1;
    for (const r of list) {
      sums.record(r);
      if (last !== r.begin) stacks = r.base.map((depth) => new Array(depth).fill(null));
      stacks = sums.join(r, stacks);
      last = r.end;
    }
    const used = this.used(sums), groups = data.groups.map((_, g) => this.group(g, sums, used));
    this.histograms(groups, sums);
    return { groups, times: sums.times };
  }

  /** By node: whether it, or one below it, has a figure.
   * @param {Sums} sums */
  used({ calls, own }) {
    const { n, parent } = this.nodes, used = new Uint8Array(n);
    for (let node = n - 1; node >= 0; node--) {
      if (calls[node] > 0 || own.some((column) => column[node] > 0)) used[node] = 1;
      if (used[node] && parent[node] >= 0) used[parent[node]] = 1;
    }
    return used;
  }

  /** Builds the tables of a group, without its histograms.
   * @param {number} group @param {Sums} sums @param {Uint8Array} used @returns {Group} */
  group(group, sums, used) {
    const { nodes } = this, { accounts } = nodes;
    /** @type {Map<number, FunctionRow>} */
    const functions = new Map();
    /** @param {number} f */
    const rowOf = (f) => {
      let row = functions.get(f);
      if (!row) functions.set(f, row = { f, calls: 0, ended: 0, net: 0, elapsed: 0, slowest: -1, at: 0 });
      return row;
    };
    /** Calls by account. @type {Map<number, number>} */
    const made = new Map();
    for (let n = nodes.n - 1; n >= 0; n--) {
      if (nodes.group[n] !== group || !used[n] || nodes.f[n] < 0) continue;
      const row = rowOf(nodes.f[n]), account = nodes.account[n];
      row.calls += sums.calls[n];
      row.net += sums.own[0][n];
      made.set(account, (made.get(account) || 0) + sums.calls[n]);
    }
    for (let a = 0; a < accounts.n; a++) {
      if (accounts.group[a] !== group || sums.ended[a] === 0) continue;
      const row = rowOf(accounts.f[a]);
      row.ended += sums.ended[a];
      row.elapsed += sums.elapsed[a];
      if (sums.slowest[a] > row.slowest || (sums.slowest[a] === row.slowest && sums.at[a] < row.at)) {
        row.slowest = sums.slowest[a];
        row.at = sums.at[a];
      }
      if (!made.has(a)) made.set(a, 0);
    }
    const tree = { d: [], f: [], h: [], c: [], w: [], raw: this.tree(group, sums, used) };
    const histograms = { f: [], c: [], b: [], n: [] };
    return { tree, functions: columns([...functions.values()]), arcs: this.arcs(made, sums), histograms };
  }

  /** @param {number} group @param {Sums} sums @param {Uint8Array} used */
  tree(group, sums, used) {
    const { nodes } = this, into = new Int32Array(nodes.n);
    /** @type {number[]} */
    const of = [];
    for (let n = 0; n < nodes.n; n++) {
      if (used[n] && nodes.group[n] === group) into[n] = of.push(n) - 1;
    }
    return indexed({
      n: of.length,
      f: Int32Array.from(of, (n) => nodes.f[n]),
      how: Uint8Array.from(of, (n) => nodes.how[n]),
      calls: Float64Array.from(of, (n) => sums.calls[n]),
      own: sums.own.map((column) => Float64Array.from(of, (n) => column[n])),
      up: Int32Array.from(of, (n) => (nodes.parent[n] < 0 ? -1 : into[nodes.parent[n]])),
    });
  }

  /** @param {Map<number, number>} made @param {Sums} sums @returns {ArcColumns} */
  arcs(made, sums) {
    const { accounts } = this.nodes, of = [...made.keys()];
    return {
      from: of.map((a) => accounts.caller[a]),
      to: of.map((a) => accounts.f[a]),
      h: of.map((a) => accounts.how[a]),
      calls: [...made.values()],
      ended: of.map((a) => sums.ended[a]),
      elapsed: of.map((a) => sums.elapsed[a]),
    };
  }

  /** Moves the cells into histograms, and leaves them zero.
   * @param {Group[]} groups @param {Sums} sums */
  histograms(groups, { touched, cells }) {
    const { accounts } = this.nodes;
    for (const cell of touched) {
      const a = Math.floor(cell / BUCKETS), h = groups[accounts.group[a]].histograms;
      h.f.push(accounts.f[a]);
      h.c.push(accounts.caller[a]);
      h.b.push(cell % BUCKETS);
      h.n.push(cells[cell]);
      cells[cell] = 0;
    }
  }
}
/** @param {FunctionRow[]} rows @returns {FunctionColumns} */
const columns = (rows) => ({
  f: rows.map((row) => row.f),
  calls: rows.map((row) => row.calls),
  ended: rows.map((row) => row.ended),
  net: rows.map((row) => row.net),
  elapsed: rows.map((row) => row.elapsed),
  slowest: rows.map((row) => Math.max(0, row.slowest)),
  at: rows.map((row) => row.at),
});
