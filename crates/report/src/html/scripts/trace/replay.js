// @ts-check
// Replays the events of a chunk on a state of threads, stacks and CPUs and calls a visitor, like
// crates/analyze/src/events.rs.
import { CALL, EXCEPTION, INTERRUPTED, JUMP } from "../core/codes.js";
import { data } from "../core/data.js";
import { KIND, OTHER, SKIPPED_NUMBERS } from "./events.js";
import { Stack } from "./stack.js";

const NUMBER_BYTES = 8;
// Entries of other kinds follow those by call and jump.
const FIRST_OTHER_ENTRY = INTERRUPTED - OTHER.INTERRUPT;

export class Machine {
  /** Creates the state at the begin of a chunk.
   * @param {OpenedChunk} chunk */
  constructor(chunk) {
    // Two more than there are: one that the trace does not know, and nobody.
    this.nobody = data.time ? data.time.threads.length + 1 : 0;
    this.stacks = Array.from({ length: this.nobody + 1 }, () => new Stack());
    this.running = this.nobody;
    this.cpu = chunk.cpu;
    this.now = chunk.begin;
    this.user = chunk.user;
    this.regions = [...chunk.regions];
    /** @type {(WaitingCpu | undefined)[]} */
    this.waiting = [];
    for (const open of chunk.stacks) {
      const stack = this.stacks[open.thread];
      for (let i = 0; i < open.f.length; i++) stack.push(open.f[i], open.how[i], -1);
      stack.base = stack.depth;
      if (open.running) this.running = open.thread;
    }
    for (const cpu of chunk.waiting) this.waiting[cpu.cpu] = cpu;
  }
}
class Replay {
  /** @param {Machine} machine @param {OpenedChunk} chunk @param {number} until
   * @param {ReplayVisitor} visitor */
  constructor(machine, chunk, until, visitor) {
    const time = /** @type {TimeData} */ (data.time);
    this.machine = machine;
    this.raw = chunk.raw;
    this.at = chunk.at;
    this.until = until;
    this.visitor = visitor;
    this.stack = machine.stacks[machine.running];
    this.wide = time.wide;
    this.kernelFunctions = time.kernel_functions;
    this.firstLoaded = time.first_loaded ?? Infinity;
  }

  /** Checks whether a function is user code's. @param {number} f */
  isUser(f) {
    return f > this.kernelFunctions && f < this.firstLoaded;
  }

  number() {
    const { raw } = this, first = raw[this.at++];
    if (first < 128) return first;
    const second = raw[this.at++];
    if (second < 128) return first & 127 | second << 7;
    let value = (first & 127 | (second & 127) << 7), scale = 16384, more;
    do {
      more = raw[this.at++];
      value += (more & 127) * scale;
      scale *= 128;
    } while (more >= 128);
    return value;
  }

  /** Ends the innermost call; returns how it was entered. */
  endTop() {
    const { stack } = this, top = stack.depth - 1, how = stack.how[top];
    this.visitor.ended(this.machine, stack, top);
    if (how === INTERRUPTED) {
      stack.interrupts--;
      stack.segment--;
    }
    stack.depth = top;
    if (stack.base > top) stack.base = top;
    return how;
  }

  /** @param {number} length */
  endDownTo(length) {
    while (this.stack.depth > length) this.endTop();
  }

  /** @param {number} f @param {number} how */
  enter(f, how) {
    const { machine, stack } = this;
    stack.push(f, how, machine.now);
    machine.user = this.isUser(f);
    this.visitor.enter(machine, stack, f, how);
  }

  /** @param {number} thread */
  run(thread) {
    const { machine } = this;
    machine.running = thread;
    this.stack = machine.stacks[thread];
    this.visitor.arrive(machine, this.stack);
  }

  resume() {
    const { how } = this.stack;
    let i = this.stack.depth - 1;
    while (i >= 0 && how[i] !== INTERRUPTED && how[i] !== EXCEPTION) i--;
    if (i >= 0) this.endDownTo(i);
  }

  leave() {
    let i = this.stack.depth - 1;
    while (i >= 0 && !this.isUser(this.stack.f[i])) i--;
    this.endDownTo(i + 1);
    this.machine.user = true;
  }

  changeCpu() {
    const { machine } = this, value = this.number(), cpu = Math.floor(value / 2);
    const { running, user } = machine;
    machine.waiting[machine.cpu] = { cpu: machine.cpu, running, user, halted: value % 2 === 1 };
    const next = machine.waiting[cpu];
    machine.cpu = cpu;
    machine.user = next ? next.user : true;
    this.run(next ? next.running : machine.nobody);
  }

  /** Idles; returns false once the time is up. */
  idle() {
    const { machine } = this;
    let idle = 0;
    for (let i = NUMBER_BYTES - 1; i >= 0; i--) idle = idle * 256 + this.raw[this.at + i];
    this.at += NUMBER_BYTES;
    const slept = Math.min(idle, this.until - machine.now);
    this.visitor.idle(machine, this.stack, slept);
    machine.now += slept;
    return slept === idle;
  }

  /** @param {boolean} begins */
  changeRegion(begins) {
    const { regions } = this.machine, region = this.number(), at = regions.lastIndexOf(region);
    if (begins && at < 0) regions.push(region);
    if (!begins && at >= 0) regions.splice(at, 1);
    this.visitor.region(this.machine, this.stack);
  }

  /** Handles all events but calls and returns; returns false once the time is up. */
  rare() {
    const code = this.raw[this.at++];
    if (code <= OTHER.SYSCALL) this.enter(this.number(), code + FIRST_OTHER_ENTRY);
    else if (code === OTHER.RESUME) this.resume();
    else if (code === OTHER.LEAVE) this.leave();
    else if (code === OTHER.UNWIND) this.endDownTo(Math.max(0, this.stack.depth - this.number()));
    else if (code === OTHER.SWITCH) {
      this.machine.user = false;
      this.run(this.number());
    } else if (code === OTHER.IDLE) return this.idle();
    else if (code === OTHER.REGION_BEGIN || code === OTHER.REGION_END) {
      this.changeRegion(code === OTHER.REGION_BEGIN);
    } else if (code === OTHER.CPU) this.changeCpu();
    else if (code === OTHER.LOCK) {
      this.number();
      this.at += NUMBER_BYTES;
      this.number();
    } else {
      const numbers = SKIPPED_NUMBERS.get(code);
      if (numbers === undefined) throw new Error("the trace has an event that is not known here");
      for (let n = numbers; n > 0; n--) this.number();
    }
    return true;
  }

  all() {
    const { machine, visitor, until, wide } = this, size = this.raw.length;
    visitor.arrive(machine, this.stack);
    while (this.at < size) {
      const head = this.number(), kind = head & 3;
      const ns = head < 0x80000000 ? head >> 2 : (head - kind) / 4;
      let taken = 0, l1i = 0, itlb = 0;
      if (wide) {
        const first = this.number();
        taken = Math.floor(first / 2);
        if (first % 2 === 1) {
          l1i = this.number();
          itlb = this.number();
        }
      }
      if (machine.now + ns >= until) {
        visitor.pass(machine, this.stack, until - machine.now, 0, 0, 0);
        machine.now = until;
        return;
      }
      if (ns > 0 || wide) visitor.pass(machine, this.stack, ns, taken, l1i, itlb);
      machine.now += ns;
      if (kind === KIND.EXIT) {
        // A tail call ends with the function that made it.
        if (this.stack.depth > 0) while (this.endTop() === JUMP && this.stack.depth > 0);
      } else if (kind === KIND.OTHER) {
        if (!this.rare()) return;
      } else this.enter(this.number(), kind === KIND.CALL ? CALL : JUMP);
    }
  }
}
/** Replays the events of a chunk up to `until`.
 * @param {Machine} machine @param {OpenedChunk} chunk @param {number} until
 * @param {ReplayVisitor} visitor */
export const replay = (machine, chunk, until, visitor) => new Replay(machine, chunk, until, visitor).all();
