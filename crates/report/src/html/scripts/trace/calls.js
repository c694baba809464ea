// @ts-check
// Single calls of a stretch of the trace, read from its chunks, for the timeline where they are
// wide enough to be visible.
import {
  CPU_HALTED, CPU_IDLE, CPU_INTERRUPT, CPU_USER, CPU_KERNEL, CPU_WAITS, IDLE, NONE,
} from "../core/codes.js";
import { data } from "../core/data.js";
import { chunksBetween, hasChunk, openedChunk } from "./chunks.js";
import { Machine, replay } from "./replay.js";

/** Most events of a stretch whose single calls are drawn. */
export const MOST_EVENTS = 60000;
const CUT_BEGIN = 1;
const CUT_END = 2;

/** Returns the approximate number of events, and whether their chunks are available.
 * @param {number} from @param {number} to */
export const eventsIn = (from, to) => {
  let events = 0, here = true;
  for (const chunk of chunksBetween(from, to)) {
    const shared = Math.min(to, chunk.end) - Math.max(from, chunk.begin);
    const part = shared / Math.max(1, chunk.end - chunk.begin);
    events += chunk.events * Math.min(1, Math.max(0, part));
    if (part > 0 && !hasChunk(chunk)) here = false;
  }
  return { events, here };
};
/** Reads the calls of a stretch, in windows without gaps.
 * @param {number} from @param {number} to */
export const collectCalls = async (from, to) => {
  /** @type {CallWindow[]} */
  const windows = [];
  for (const chunk of chunksBetween(from, to).filter(hasChunk)) {
    const opened = await openedChunk(chunk), last = windows[windows.length - 1];
    const begin = Math.max(from, chunk.begin), end = Math.min(to, chunk.end);
    const joined = last && last.end === chunk.begin ? last : null;
    const window = new WindowReader(opened, begin, joined).read(end);
    if (!joined) windows.push(window);
  }
  for (const window of windows) {
    for (const call of window.calls) {
      if (!call.open) continue;
      call.end = window.end;
      call.cut |= CUT_END;
      call.open = false;
    }
  }
  return windows;
};
/** Extends the last slice, or adds one.
 * @template {{ begin: number, end: number }} T
 * @param {T[]} list @param {T} slice @param {(before: T) => boolean} isSame */
const extend = (list, slice, isSame) => {
  const before = list[list.length - 1];
  if (before && before.end === slice.begin && isSame(before)) before.end = slice.end;
  else list.push(slice);
};
/** @type {Map<number, number> | null} */
let pageNumbers = null;
/** Returns the page's number of a function of the trace.
 * @param {number} f */
const pageNumber = (f) => {
  if (!pageNumbers) pageNumbers = new Map(data.symbol.map((symbol, at) => [symbol, at]));
  return pageNumbers.get(f) ?? NONE;
};
/** @implements {ReplayVisitor} */
class WindowReader {
  /** @param {OpenedChunk} chunk @param {number} from
   * @param {CallWindow | null} joined the window that the chunk continues */
  constructor(chunk, from, joined) {
    this.time = /** @type {TimeData} */ (data.time);
    this.chunk = chunk;
    this.machine = new Machine(chunk);
    this.from = from;
    this.cpus = this.time.cpu_count > 1 ? this.time.cpu_count : 0;
    const { lanes } = this.time;
    this.interruptLane = lanes.findIndex((lane) => lane.kind === "interrupt");
    this.idleLane = lanes.findIndex((lane) => lane.kind === "idle");
    this.isStarted = Boolean(joined);
    /** @type {CallWindow} */
    this.window = joined ?? {
      begin: from, end: from, calls: [], slices: [], cpus: Array.from({ length: this.cpus }, () => []),
      stacks: [],
    };
  }

  /** @param {number} until */
  read(until) {
    replay(this.machine, this.chunk, until, this);
    this.start(this.machine);
    return this.window;
  }

  /** @param {number} thread */
  laneOf(thread) {
    return thread < this.time.threads.length ? this.time.threads[thread][1] : this.time.unknown;
  }

  /** @param {number} thread */
  isIdleTask(thread) {
    return thread < this.time.threads.length && this.time.threads[thread][0] === IDLE;
  }

  /** Begins the window with the calls that are open.
   * @param {Machine} machine */
  start(machine) {
    if (this.isStarted) return;
    this.isStarted = true;
    this.window.stacks = machine.stacks.map((stack, thread) => Array.from({ length: stack.depth }, (_, i) =>
      this.push(thread, i, stack.f[i], stack.how[i], this.from, CUT_BEGIN)));
  }

  /** @param {number} thread @param {number} depth @param {number} f @param {number} how
   * @param {number} begin
   * @param {number} cut */
  push(thread, depth, f, how, begin, cut) {
    const lane = this.laneOf(thread), number = pageNumber(f);
    const call = { begin, end: begin, lane, depth, f: number, how: data.hows[how], cut, open: true };
    this.window.calls.push(call);
    return call;
  }

  /** @param {Machine} machine @param {number} begin @param {number} end @param {boolean} isHalted */
  spend(machine, begin, end, isHalted) {
    const isInterrupt = machine.stacks[machine.running].interrupts > 0;
    const ownLane = isInterrupt ? this.interruptLane : this.laneOf(machine.running);
    const lane = isHalted ? this.idleLane : ownLane, cpu = isHalted ? 0 : machine.cpu;
    const user = !isHalted && !isInterrupt && machine.user ? 1 : 0;
    const isSame = (/** @type {LaneSlice} */ s) => s.lane === lane && s.user === user && s.cpu === cpu;
    extend(this.window.slices, { begin, end, lane, user, cpu }, isSame);
    for (let at = 0; at < this.cpus; at++) {
      const doing = this.stateOf(machine, at, isHalted, user);
      const goesOn = (/** @type {CpuSlice} */ s) => s.kind === doing.kind && s.lane === doing.lane;
      extend(this.window.cpus[at], { begin, end, ...doing }, goesOn);
    }
    this.window.end = end;
  }

  /** @param {Machine} machine @param {number} cpu @param {boolean} isHalted @param {number} user */
  stateOf(machine, cpu, isHalted, user) {
    const isOther = cpu !== machine.cpu, waiting = isOther ? machine.waiting[cpu] : null;
    if (isHalted || isOther && (!waiting || waiting.halted)) return { kind: CPU_HALTED, lane: this.idleLane };
    const thread = waiting ? waiting.running : machine.running;
    const isInterrupt = machine.stacks[thread].interrupts > 0;
    const lane = isInterrupt ? this.interruptLane : this.laneOf(thread);
    if (waiting) return { kind: CPU_WAITS, lane };
    if (isInterrupt) return { kind: CPU_INTERRUPT, lane };
    return { kind: this.isIdleTask(thread) ? CPU_IDLE : user ? CPU_USER : CPU_KERNEL, lane };
  }

  /** @param {Machine} machine @param {number} ns @param {boolean} isHalted */
  stretch(machine, ns, isHalted) {
    const end = machine.now + ns;
    if (end < this.from || end === machine.now) return;
    this.start(machine);
    this.spend(machine, Math.max(this.from, machine.now), end, isHalted);
  }

  arrive() {}

  region() {}

  /** @param {Machine} machine @param {Stack} _ @param {number} ns */
  pass(machine, _, ns) {
    this.stretch(machine, ns, false);
  }

  /** @param {Machine} machine @param {Stack} _ @param {number} ns */
  idle(machine, _, ns) {
    this.stretch(machine, ns, true);
  }

  /** @param {Machine} machine @param {Stack} stack @param {number} f @param {number} how */
  enter(machine, stack, f, how) {
    if (machine.now < this.from) return;
    this.start(machine);
    const open = this.window.stacks[machine.running];
    open.length = stack.depth - 1;
    open.push(this.push(machine.running, stack.depth - 1, f, how, machine.now, 0));
  }

  /** @param {Machine} machine @param {Stack} _ @param {number} top */
  ended(machine, _, top) {
    if (machine.now < this.from) return;
    this.start(machine);
    const open = this.window.stacks[machine.running], call = open[top];
    open.length = top;
    if (!call) return;
    call.end = machine.now;
    call.open = false;
  }
}
