// Single calls of a stretch of the trace, read from its chunks, for the timeline where they are wide enough to be visible.
kt.mostEvents = 60000;
// Returns the approximate number of events, and whether their chunks are available.
kt.eventsIn = (from, to) => {
  let events = 0, here = true;
  for (const chunk of kt.between(from, to)) {
    const part = (Math.min(to, chunk.end) - Math.max(from, chunk.begin)) / Math.max(1, chunk.end - chunk.begin);
    events += chunk.events * Math.min(1, Math.max(0, part));
    if (part > 0 && !kt.hasChunk(chunk)) here = false;
  }
  return { events, here };
};
kt.collect = async (from, to) => {
  const out = [];
  let last = null;
  for (const chunk of kt.between(from, to)) {
    if (!kt.hasChunk(chunk)) continue;
    const opened = await kt.opened(chunk);
    const joined = last && last.end === chunk.begin ? last : null;
    const made = one(opened, Math.max(from, chunk.begin), Math.min(to, chunk.end), joined);
    if (!joined) out.push(made);
    last = made;
  }
  for (const w of out) for (const c of w.calls) if (c.open) { c.end = w.end; c.cut = (c.cut || 0) | 2; c.open = false; }
  return out;
};
// `w` continues if there was no gap.
const one = (chunk, from, to, w) => {
  const { time } = kt.data, machine = kt.machineAt(chunk), cpus = time.cpu_count > 1 ? time.cpu_count : 0;
  const interruptLane = time.lanes.findIndex((lane) => lane.kind === "interrupt"), idleLane = time.lanes.findIndex((lane) => lane.kind === "idle");
  const laneOf = (thread) => (thread < time.threads.length ? time.threads[thread][1] : time.unknown);
  const isIdleTask = (thread) => thread < time.threads.length && time.threads[thread][0] === kt.IDLE;
  const known = w || { begin: from, end: from, calls: [], slices: [], cpus: Array.from({ length: cpus }, () => []), stacks: null };
  let started = false;
  const start = (m) => {
    if (started) return;
    started = true;
    if (w) return;
    known.stacks = m.stacks.map((s, thread) => Array.from({ length: s.depth }, (_, i) => push(thread, i, s.f[i], s.how[i], from, 1)));
  };
  const push = (thread, depth, f, how, begin, cut) => {
    const call = { begin, end: begin, lane: laneOf(thread), depth, f: kt.pageNumber(f), how: kt.data.hows[how], cut, open: true };
    known.calls.push(call);
    return call;
  };
  const extend = (list, begin, end, more) => {
    const before = list[list.length - 1];
    if (before && before.end === begin && Object.keys(more).every((key) => before[key] === more[key])) before.end = end;
    else list.push({ begin, end, ...more });
  };
  const had = (m, begin, end, halted) => {
    const stack = m.stacks[m.running], interrupt = stack.interrupts > 0;
    const lane = halted ? idleLane : interrupt ? interruptLane : laneOf(m.running), user = !halted && !interrupt && m.user ? 1 : 0;
    extend(known.slices, begin, end, { lane, user, cpu: halted ? 0 : m.cpu });
    for (let cpu = 0; cpu < cpus; cpu++) {
      const waiting = cpu === m.cpu ? null : m.waiting[cpu];
      const thread = waiting ? waiting.running : m.running;
      const inInterrupt = m.stacks[thread].interrupts > 0;
      const who = inInterrupt ? interruptLane : laneOf(thread);
      if (halted || cpu !== m.cpu && (!waiting || waiting.halted)) extend(known.cpus[cpu], begin, end, { kind: 4, lane: idleLane });
      else if (waiting) extend(known.cpus[cpu], begin, end, { kind: 5, lane: who });
      else extend(known.cpus[cpu], begin, end, { kind: inInterrupt ? 2 : isIdleTask(thread) ? 3 : user, lane: who });
    }
    known.end = end;
  };
  const stretch = (m, ns, halted) => {
    const end = m.now + ns;
    if (end < from || end === m.now) return;
    start(m);
    had(m, Math.max(from, m.now), end, halted);
  };
  kt.replay(machine, chunk, to, {
    arrive: () => {}, region: () => {},
    pass: (m, stack, ns) => stretch(m, ns, false),
    idle: (m, stack, ns) => stretch(m, ns, true),
    enter: (m, stack, f, how) => {
      if (m.now < from) return;
      start(m);
      const open = known.stacks[m.running];
      open.length = stack.depth - 1;
      open.push(push(m.running, stack.depth - 1, f, how, m.now, 0));
    },
    ended: (m, stack, top) => {
      if (m.now < from) return;
      start(m);
      const call = known.stacks[m.running][top];
      known.stacks[m.running].length = top;
      if (call) { call.end = m.now; call.open = false; }
    },
  });
  start(machine);
  return known;
};
kt.pageNumber = (f) => {
  if (!kt.numbers) kt.numbers = new Map(kt.data.symbol.map((symbol, at) => [symbol, at]));
  const at = kt.numbers.get(f);
  return at === undefined ? kt.NONE : at;
};
