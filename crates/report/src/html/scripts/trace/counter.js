// @ts-check
// Counts the events of single chunks: the same figures as the profile's tables, by path, function,
// arc and bucket. Calls that span chunks are joined when chunks are added up (add.js).
import { IDLE, INTERRUPT, INTERRUPTED, NONE, THREAD, UNATTRIBUTED, USER } from "../core/codes.js";
import { data } from "../core/data.js";
import { ChunkFigures } from "./figures.js";
import { CallTreeNodes } from "./nodes.js";
import { Machine, replay } from "./replay.js";

const WEIGHTS = 4;
const UNKNOWN = "[unknown]";
export const columnCount = () => (data.weights ? WEIGHTS : 1);

/** By number of the trace: the page's number of a function. */
const pageNumbers = () => {
  const numbers = new Int32Array(data.symbol.reduce((most, s) => Math.max(most, s), 0) + 2).fill(NONE);
  data.symbol.forEach((symbol, f) => { numbers[symbol] = f; });
  return numbers;
};

/** @implements {ReplayVisitor} */
export class ChunkCounter {
  constructor() {
    this.time = /** @type {TimeData} */ (data.time);
    this.numbers = pageNumbers();
    this.nodes = new CallTreeNodes();
    this.figures = new ChunkFigures(columnCount());
    this.unknown = THREAD - data.comms.indexOf(UNKNOWN);
    /** Number of the change of regions or chunks, for which the nodes of stacks are valid. */
    this.stamp = 0;
    this.group = NONE;
    this.from = 0;
    this.isActive = false;
    // Nodes of the running thread without a frame; -1 if there is none yet.
    this.bareUser = -1;
    this.bareOther = -1;
    /** @type {Map<number, number[]>} */
    this.times = new Map();
    /** @type {ChunkRecord["inherited"]} */
    this.inherited = [];
    /** @type {number[]} */
    this.base = [];
  }

  /** @param {number} f */
  pageNumber(f) {
    return f < this.numbers.length ? this.numbers[f] : NONE;
  }

  /** @param {number} thread */
  codeOf(thread) {
    return thread < this.time.threads.length ? this.time.threads[thread][0] : this.unknown;
  }

  /** @param {Machine} machine */
  enterGroup({ regions }) {
    const group = regions.length ? this.time.groups[regions[regions.length - 1]] : NONE;
    this.group = group ?? NONE;
    this.stamp++;
  }

  /** Busy, idle and user time of the group. */
  groupTimes() {
    let sums = this.times.get(this.group);
    if (!sums) this.times.set(this.group, sums = [0, 0, 0]);
    return sums;
  }

  /** Begins counting: open frames count as begun before.
   * @param {Machine} machine */
  begin(machine) {
    if (this.isActive) return;
    this.isActive = true;
    for (const stack of machine.stacks) {
      stack.base = stack.depth;
      stack.clock.fill(0);
      stack.segments.fill(0);
    }
    this.base = machine.stacks.map((stack) => stack.base);
  }

  /** Locates the running thread's frames in the tree after a change of thread or region.
   * @param {Machine} machine @param {Stack} stack */
  arrive(machine, stack) {
    if (this.group < 0) return;
    this.bareUser = this.bareOther = -1;
    stack.root = this.nodes.root(this.group, this.codeOf(machine.running));
    if (stack.stamp === this.stamp) return;
    stack.stamp = this.stamp;
    let node = stack.root, caller = NONE;
    for (let i = 0; i < stack.depth; i++) {
      if (stack.how[i] === INTERRUPTED) {
        node = this.nodes.root(this.group, INTERRUPT);
        caller = NONE;
      }
      const f = this.pageNumber(stack.f[i]);
      stack.node[i] = node = this.nodes.child(node, f, stack.how[i], caller);
      caller = f;
    }
  }

  /** @param {Machine} machine @param {Stack} stack */
  region(machine, stack) {
    this.enterGroup(machine);
    this.arrive(machine, stack);
  }

  /** Node to which the running code counts.
   * @param {Stack} stack @param {boolean} isUser */
  nodeNow(stack, isUser) {
    if (stack.depth > 0) return stack.node[stack.depth - 1];
    if (isUser) {
      if (this.bareUser < 0) this.bareUser = this.nodes.child(stack.root, USER, 0, NONE);
      return this.bareUser;
    }
    if (this.bareOther < 0) this.bareOther = this.nodes.child(stack.root, UNATTRIBUTED, 0, NONE);
    return this.bareOther;
  }

  /** @type {ReplayVisitor["pass"]} */
  pass(machine, stack, passed, taken, l1i, itlb) {
    let ns = passed;
    if (machine.now < this.from) {
      if (machine.now + ns <= this.from) return;
      ns = machine.now + ns - this.from;
      this.begin(machine);
    }
    stack.segments[stack.segment] += ns;
    if (this.group < 0) return;
    const isUser = stack.depth === 0 && machine.user && this.codeOf(machine.running) !== IDLE;
    const node = this.nodeNow(stack, isUser), { figures } = this;
    figures.touch(node);
    const { own } = figures;
    own[0][node] += ns;
    if (own.length === WEIGHTS) {
      own[1][node] += taken;
      own[2][node] += l1i;
      own[3][node] += itlb;
    }
    const sums = this.groupTimes();
    sums[0] += ns;
    if (isUser) sums[2] += ns;
  }

  /** @param {Machine} machine @param {Stack} _ @param {number} ns */
  idle(machine, _, ns) {
    const counted = Math.min(ns, machine.now + ns - this.from);
    if (counted <= 0) return;
    if (machine.now < this.from) this.begin(machine);
    if (this.group >= 0) this.groupTimes()[1] += counted;
  }

  /** @param {Machine} machine @param {Stack} stack @param {number} f @param {number} how */
  enter(machine, stack, f, how) {
    if (this.group < 0) {
      stack.stamp = -1;
      return;
    }
    const { nodes } = this, depth = stack.depth - 1, isInterrupt = how === INTERRUPTED;
    const top = isInterrupt || depth === 0 ? -1 : stack.node[depth - 1];
    const bottom = isInterrupt ? nodes.root(this.group, INTERRUPT) : stack.root;
    const caller = top >= 0 ? nodes.f[top] : NONE;
    const node = nodes.child(top >= 0 ? top : bottom, this.pageNumber(f), how, caller);
    stack.node[depth] = node;
    if (machine.now < this.from) return;
    this.begin(machine);
    this.figures.touch(node);
    this.figures.calls[node]++;
  }

  /** @param {Machine} machine @param {Stack} stack @param {number} top */
  ended(machine, stack, top) {
    if (machine.now >= this.from) this.begin(machine);
    if (this.group < 0 || !this.isActive) return;
    const elapsed = stack.segments[stack.segment] - stack.clock[top];
    const account = this.nodes.account[stack.node[top]];
    if (top < stack.base) this.inherited.push([machine.running, account, elapsed]);
    else if (account >= 0) this.figures.countEnded(account, elapsed, stack.begin[top]);
  }

  /** Counts a chunk from `begin` up to `until`.
   * @param {OpenedChunk} opened @param {number} begin @param {number} until
   * @returns {ChunkRecord} */
  count(opened, begin, until) {
    this.figures.begin();
    this.times = new Map();
    this.inherited = [];
    const machine = new Machine(opened);
    this.from = begin;
    this.isActive = opened.begin >= begin;
    this.base = machine.stacks.map((stack) => stack.base);
    this.enterGroup(machine);
    replay(machine, opened, until, this);
    // Without an event after `begin`, all frames that are open now were open before.
    if (!this.isActive) this.base = machine.stacks.map((stack) => stack.base);
    const left = machine.stacks.map((stack) => ({
      carried: stack.base,
      portions: stack.portions(),
      begins: Array.from(stack.begin.subarray(stack.base, stack.depth)),
    }));
    const { base, times, inherited } = this;
    const about = { begin: Math.max(begin, opened.begin), end: machine.now, base, inherited, left, times };
    return { ...about, ...this.figures.columns() };
  }
}
