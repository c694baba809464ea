// Reader of a chunk of a trace in the format of crates/trace. It replays the events on a state of threads, stacks and CPUs and
// calls a visitor, like crates/analyze/src/events.rs.
const CALL = 0, JUMP = 1, INTERRUPTED = 2, EXCEPTION = 3;
kt.openChunk = (bytes) => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const long = (at) => view.getUint32(at, true) + view.getUint32(at + 4, true) * 4294967296;
  if (view.getUint32(0, true) !== 0x4843544b) throw new Error("a chunk of the trace is damaged");
  const state = view.getUint32(32, true), payload = view.getUint32(36, true), compressed = view.getUint32(40, true);
  const raw = fzstd.decompress(bytes.subarray(44, 44 + compressed), new Uint8Array(state + payload));
  if (raw.length !== state + payload) throw new Error("a chunk of the trace is damaged");
  return { cpu: view.getUint32(4, true), events: view.getUint32(12, true), begin: long(16), end: long(24), ...opening(raw, state), raw, at: state };
};
// State at the begin of the chunk.
const opening = (raw, end) => {
  const view = new DataView(raw.buffer, raw.byteOffset, raw.byteLength);
  let at = 0;
  const word = () => { at += 4; return view.getUint32(at - 4, true); };
  const flag = () => raw[at++] === 1;
  const user = flag(), waiting = [], regions = [], stacks = [];
  for (let n = word(); n > 0; n--) waiting.push({ cpu: word(), running: word(), user: flag(), halted: flag() });
  for (let n = word(); n > 0; n--) regions.push(word());
  while (at < end) {
    const stack = { thread: word(), running: flag(), f: [], how: [] };
    for (let n = word(); n > 0; n--) { stack.f.push(word()); stack.how.push(raw[at++]); }
    stacks.push(stack);
  }
  return { user, waiting, regions, stacks };
};
// Open frames of a thread: function, kind of entry, and the visitor's value of each. A segment begins at each frame that an
// interrupt entered; its clock belongs to the visitor.
class Stack {
  constructor() {
    Object.assign(this, { depth: 0, room: 64, segment: 0, interrupts: 0, base: 0, stamp: -1, root: -1, segments: new Float64Array(16) });
    [this.f, this.a] = [new Int32Array(64), new Int32Array(64)];
    this.how = new Uint8Array(64);
    [this.b, this.begin] = [new Float64Array(64), new Float64Array(64)];
  }

  push(f, how, begin) {
    if (this.depth === this.room) {
      this.room *= 2;
      for (const key of ["f", "a", "how", "b", "begin"]) { const old = this[key]; this[key] = new old.constructor(this.room); this[key].set(old); }
    }
    if (how === INTERRUPTED) {
      this.interrupts++;
      if (++this.segment === this.segments.length) { const old = this.segments; this.segments = new Float64Array(old.length * 2); this.segments.set(old); }
      this.segments[this.segment] = 0;
    }
    const at = this.depth++;
    this.f[at] = f;
    this.how[at] = how;
    this.a[at] = 0;
    this.b[at] = this.segments[this.segment];
    this.begin[at] = begin;
  }
}
// Creates the state at the begin of a chunk.
kt.machineAt = (chunk) => {
  const nobody = kt.data.time.threads.length + 1;
  const machine = { stacks: Array.from({ length: nobody + 1 }, () => new Stack()), running: nobody, cpu: chunk.cpu, now: chunk.begin, user: chunk.user, regions: [...chunk.regions], waiting: [] };
  for (const open of chunk.stacks) {
    const s = machine.stacks[open.thread];
    for (let i = 0; i < open.f.length; i++) s.push(open.f[i], open.how[i], -1);
    s.base = s.depth;
    if (open.running) machine.running = open.thread;
  }
  for (const cpu of chunk.waiting) machine.waiting[cpu.cpu] = cpu;
  return machine;
};
// Replays the events up to `until`; the visitor has `pass`, `idle`, `enter`, `ended`, `arrive`, `region`.
kt.replay = (machine, chunk, until, visitor) => {
  const raw = chunk.raw, size = raw.length, wide = kt.data.time.wide, kernel = kt.data.time.kernel_functions;
  let at = chunk.at, stack = machine.stacks[machine.running];
  const number = () => {
    const byte = raw[at++];
    if (byte < 128) return byte;
    const second = raw[at++];
    if (second < 128) return byte & 127 | second << 7;
    let value = (byte & 127 | (second & 127) << 7), scale = 16384, more;
    do { more = raw[at++]; value += (more & 127) * scale; scale *= 128; } while (more >= 128);
    return value;
  };
  const endTop = () => {
    const top = stack.depth - 1, how = stack.how[top];
    visitor.ended(machine, stack, top);
    if (how === INTERRUPTED) { stack.interrupts--; stack.segment--; }
    stack.depth = top;
    if (stack.base > top) stack.base = top;
    return how;
  };
  const enter = (f, how) => {
    stack.push(f, how, machine.now);
    machine.user = f > kernel;
    visitor.enter(machine, stack, f, how);
  };
  const downTo = (length) => { while (stack.depth > length) endTop(); };
  const last = (isIt) => { let i = stack.depth - 1; while (i >= 0 && !isIt(i)) i--; return i; };
  const run = (thread) => { machine.running = thread; stack = machine.stacks[thread]; visitor.arrive(machine, stack); };
  // Handles all events but calls and returns; returns false once the time is up.
  const rare = () => {
    const code = raw[at++];
    if (code <= 2) enter(number(), code + 2);
    else if (code === 3) { const i = last((k) => stack.how[k] === INTERRUPTED || stack.how[k] === EXCEPTION); if (i >= 0) downTo(i); }
    else if (code === 4) { downTo(last((k) => stack.f[k] > kernel) + 1); machine.user = true; }
    else if (code === 5) downTo(Math.max(0, stack.depth - number()));
    else if (code === 6) { machine.user = false; run(number()); }
    else if (code === 7) {
      let idle = 0;
      for (let i = 7; i >= 0; i--) idle = idle * 256 + raw[at + i];
      at += 8;
      const slept = Math.min(idle, until - machine.now);
      visitor.idle(machine, stack, slept);
      machine.now += slept;
      return slept === idle;
    } else if (code === 8) { const region = number(); if (!machine.regions.includes(region)) machine.regions.push(region); visitor.region(machine, stack); }
    else if (code === 9) { const i = machine.regions.lastIndexOf(number()); if (i >= 0) machine.regions.splice(i, 1); visitor.region(machine, stack); }
    else if (code === 11 || code === 13 || code === 16) number();
    else if (code === 12) {
      const value = number(), cpu = Math.floor(value / 2);
      machine.waiting[machine.cpu] = { cpu: machine.cpu, running: machine.running, user: machine.user, halted: value % 2 === 1 };
      const next = machine.waiting[cpu] || { running: kt.data.time.threads.length + 1, user: true };
      machine.cpu = cpu;
      machine.user = next.user;
      run(next.running);
    } else if (code === 14) { number(); number(); }
    else if (code === 15) { number(); number(); number(); }
    else if (code === 17) { number(); at += 8; number(); }
    else if (code !== 10) throw new Error("the trace has an event that is not known here");
    return true;
  };
  visitor.arrive(machine, stack);
  while (at < size) {
    const head = number(), kind = head & 3, ns = head < 2147483648 ? head >> 2 : (head - kind) / 4;
    let taken = 0, l1i = 0, itlb = 0;
    if (wide) {
      const first = number();
      taken = Math.floor(first / 2);
      if (first % 2 === 1) { l1i = number(); itlb = number(); }
    }
    if (machine.now + ns >= until) { visitor.pass(machine, stack, until - machine.now, 0, 0, 0); machine.now = until; return false; }
    if (ns > 0 || wide) visitor.pass(machine, stack, ns, taken, l1i, itlb);
    machine.now += ns;
    if (kind === 1) { if (stack.depth > 0) while (endTop() === JUMP && stack.depth > 0); }
    else if (kind === 3) { if (!rare()) return false; }
    else enter(number(), kind === 0 ? CALL : JUMP);
  }
  return true;
};
