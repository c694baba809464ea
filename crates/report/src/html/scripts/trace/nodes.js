// @ts-check
// Numbers of the call tree's nodes, found by parent, function and kind of entry in a hash table
// with open addressing.
import { NONE } from "../core/codes.js";
import { Accounts } from "./accounts.js";
import { doubled } from "./stack.js";

const NODES = 1 << 12;
const GROUP_STRIDE = 65536;

export class CallTreeNodes {
  constructor() {
    this.n = 0;
    this.parent = new Int32Array(NODES);
    this.f = new Int32Array(NODES);
    this.how = new Uint8Array(NODES);
    this.group = new Int32Array(NODES);
    /** Account of the arc that leads to the node, or -1. */
    this.account = new Int32Array(NODES);
    this.accounts = new Accounts();
    /** @type {Map<number, number>} */
    this.roots = new Map();
    // Number of a node plus 1; 0 for none.
    this.slots = new Int32Array(NODES * 4);
  }

  /** Returns the slot of a node, or a free one.
   * @param {number} parent @param {number} f @param {number} how */
  slot(parent, f, how) {
    const { slots } = this, mask = slots.length - 1;
    let at = Math.imul(parent + 7, 0x9e3779b1) ^ Math.imul(f + 64, 0x85ebca6b) ^ how * 0x27d4eb2f;
    for (at &= mask; slots[at] > 0; at = (at + 1) & mask) {
      const node = slots[at] - 1;
      if (this.parent[node] === parent && this.f[node] === f && this.how[node] === how) return at;
    }
    return at;
  }

  /** @param {number} parent @param {number} f @param {number} how @param {number} group
   * @param {number} caller */
  add(parent, f, how, group, caller) {
    if (this.n === this.parent.length) {
      this.parent = doubled(this.parent);
      this.f = doubled(this.f);
      this.how = doubled(this.how);
      this.group = doubled(this.group);
      this.account = doubled(this.account);
    }
    const node = this.n++;
    this.parent[node] = parent;
    this.f[node] = f;
    this.how[node] = how;
    this.group[node] = group;
    this.account[node] = f >= 0 ? this.accounts.of(group, caller, f, how) : NONE;
    return node;
  }

  /** Returns the node of a function below another; `caller` is NONE if no function calls it.
   * @param {number} parent @param {number} f @param {number} how @param {number} caller */
  child(parent, f, how, caller) {
    const at = this.slot(parent, f, how);
    if (this.slots[at] > 0) return this.slots[at] - 1;
    const node = this.add(parent, f, how, this.group[parent], caller);
    this.slots[at] = node + 1;
    if (this.n * 2 > this.slots.length) this.widen();
    return node;
  }

  widen() {
    this.slots = new Int32Array(this.slots.length * 2);
    for (let n = 0; n < this.n; n++) {
      if (this.parent[n] >= 0) this.slots[this.slot(this.parent[n], this.f[n], this.how[n])] = n + 1;
    }
  }

  /** Returns the root of a group that a code stands for.
   * @param {number} group @param {number} code */
  root(group, code) {
    const key = group * GROUP_STRIDE - code;
    let node = this.roots.get(key);
    if (node === undefined) this.roots.set(key, node = this.add(-1, code, 0, group, NONE));
    return node;
  }
}
