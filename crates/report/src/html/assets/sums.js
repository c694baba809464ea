// Sums over the events of a stretch of the trace: the same figures as the profile's tables, by path, function, arc and bucket.
// Each chunk is counted once by itself; calls that span chunks are joined when chunks are added up.
kt.counter = () => {
  const time = kt.data.time, columns = kt.data.weights ? 4 : 1;
  const numbers = new Int32Array(kt.data.symbol.reduce((most, s) => Math.max(most, s), 0) + 2).fill(kt.NONE);
  kt.data.symbol.forEach((symbol, f) => { numbers[symbol] = f; });
  const page = (f) => (f < numbers.length ? numbers[f] : kt.NONE);
  // Nodes: parent, code of the page, entry kind, group, account. Accounts: group, caller, function, entry kind.
  const nodes = { n: 0, parent: new Int32Array(4096), f: new Int32Array(4096), how: new Uint8Array(4096), group: new Int32Array(4096), account: new Int32Array(4096) };
  const accounts = { n: 0, group: [], caller: [], f: [], how: [] }, accountOf = new Map(), rootOf = new Map();
  let slots = new Int32Array(1 << 14), room = 1 << 12;
  let own = Array.from({ length: columns }, () => new Float64Array(room)), calls = new Float64Array(room), seen = new Int32Array(room), epoch = 0, touched = [];
  let ended = new Float64Array(1024), elapsed = new Float64Array(1024), slowest = new Float64Array(1024), slowestAt = new Float64Array(1024), seenAccount = new Int32Array(1024), buckets = new Float64Array(1024 * 256), touchedAccounts = [], touchedBuckets = [];
  let times = new Map();
  const wider = (array, Type, by) => { const out = new Type(array.length * by); out.set(array); return out; };
  const account = (group, caller, f, how) => {
    const key = ((group * 4194304 + caller + 1) * 4194304 + f + 1) * 8 + how;
    let at = accountOf.get(key);
    if (at === undefined) {
      at = accounts.n++;
      accountOf.set(key, at);
      accounts.group.push(group); accounts.caller.push(caller); accounts.f.push(f); accounts.how.push(how);
      if (accounts.n > ended.length) {
        [ended, elapsed, slowest, slowestAt, buckets] = [ended, elapsed, slowest, slowestAt, buckets].map((array) => wider(array, Float64Array, 2));
        seenAccount = wider(seenAccount, Int32Array, 2);
      }
    }
    return at;
  };
  const place = (parent, f, how) => {
    let at = (Math.imul(parent + 7, 0x9e3779b1) ^ Math.imul(f + 64, 0x85ebca6b) ^ how * 0x27d4eb2f) >>> 0;
    for (at &= slots.length - 1; slots[at] > 0; at = (at + 1) & (slots.length - 1)) {
      const node = slots[at] - 1;
      if (nodes.parent[node] === parent && nodes.f[node] === f && nodes.how[node] === how) return at;
    }
    return at;
  };
  const made = (parent, f, how, group, caller) => {
    const node = nodes.n++;
    if (nodes.n > room) {
      room *= 2;
      for (const key of ["parent", "f", "group", "account"]) nodes[key] = wider(nodes[key], Int32Array, 2);
      nodes.how = wider(nodes.how, Uint8Array, 2);
      own = own.map((column) => wider(column, Float64Array, 2));
      calls = wider(calls, Float64Array, 2);
      seen = wider(seen, Int32Array, 2);
    }
    nodes.parent[node] = parent; nodes.f[node] = f; nodes.how[node] = how; nodes.group[node] = group;
    nodes.account[node] = f >= 0 ? account(group, caller, f, how) : -1;
    return node;
  };
  const child = (parent, f, how, caller) => {
    const at = place(parent, f, how);
    if (slots[at] > 0) return slots[at] - 1;
    const node = made(parent, f, how, nodes.group[parent], caller);
    slots[at] = node + 1;
    if (nodes.n * 2 > slots.length) {
      slots = new Int32Array(slots.length * 2);
      for (let n = 0; n < nodes.n; n++) if (nodes.parent[n] >= 0) slots[place(nodes.parent[n], nodes.f[n], nodes.how[n])] = n + 1;
    }
    return node;
  };
  const root = (group, code) => {
    const key = group * 65536 - code;
    let node = rootOf.get(key);
    if (node === undefined) rootOf.set(key, node = made(-1, code, 0, group, kt.NONE));
    return node;
  };
  const touch = (node) => {
    if (seen[node] === epoch) return;
    seen[node] = epoch;
    touched.push(node);
    calls[node] = 0;
    for (const column of own) column[node] = 0;
  };
  const codeOf = (thread) => (thread < time.threads.length ? time.threads[thread][0] : kt.THREAD - kt.data.comms.indexOf("[unknown]"));
  let group = -1, active = false, from = 0, theirs = [], stamp = 0, bareUser = -1, bareOther = -1, began = () => {};
  const groupOf = (regions) => { const at = regions.length ? time.groups[regions[regions.length - 1]] : -1; return at === undefined || at === null ? -1 : at; };
  const bucketsOf = (at, e, begin) => {
    if (seenAccount[at] !== epoch) {
      seenAccount[at] = epoch;
      touchedAccounts.push(at);
      ended[at] = elapsed[at] = 0;
      slowest[at] = -1;
    }
    ended[at]++;
    elapsed[at] += e;
    if (e > slowest[at] || (e === slowest[at] && begin < slowestAt[at])) { slowest[at] = e; slowestAt[at] = begin; }
    const cell = at * 256 + kt.bucketOf(e);
    if (buckets[cell]++ === 0) touchedBuckets.push(cell);
  };
  const part = () => {
    let sum = times.get(group);
    if (!sum) times.set(group, sum = [0, 0, 0]);
    return sum;
  };
  const visitor = {
    // Locates the running thread's frames in the tree after a change of thread or region.
    arrive: (machine, stack) => {
      if (group < 0) return;
      const code = codeOf(machine.running), base = root(group, code);
      bareUser = bareOther = -1;
      stack.root = base;
      if (stack.stamp === stamp) return;
      stack.stamp = stamp;
      let node = base, caller = kt.NONE;
      for (let i = 0; i < stack.depth; i++) {
        if (stack.how[i] === INTERRUPTED) { node = root(group, kt.INTERRUPT); caller = kt.NONE; }
        const f = page(stack.f[i]);
        stack.a[i] = node = child(node, f, stack.how[i], caller);
        caller = f;
      }
    },
    region: (machine, stack) => {
      group = groupOf(machine.regions);
      stamp++;
      visitor.arrive(machine, stack);
    },
    pass: (machine, stack, ns, taken, l1i, itlb) => {
      if (machine.now < from) {
        if (machine.now + ns <= from) return;
        ns = machine.now + ns - from;
        visitor.begin(machine);
      }
      stack.segments[stack.segment] += ns;
      if (group < 0) return;
      let node;
      const depth = stack.depth;
      const isUser = depth === 0 && machine.user && codeOf(machine.running) !== kt.IDLE;
      if (depth > 0) node = stack.a[depth - 1];
      else if (isUser) node = bareUser >= 0 ? bareUser : bareUser = child(stack.root, kt.USER, 0, kt.NONE);
      else node = bareOther >= 0 ? bareOther : bareOther = child(stack.root, kt.UNATTRIBUTED, 0, kt.NONE);
      if (seen[node] !== epoch) touch(node);
      own[0][node] += ns;
      if (columns === 4) { own[1][node] += taken; own[2][node] += l1i; own[3][node] += itlb; }
      const sum = part();
      sum[0] += ns;
      if (isUser) sum[2] += ns;
    },
    idle: (machine, stack, ns) => {
      const counted = Math.min(ns, machine.now + ns - from);
      if (counted <= 0) return;
      if (machine.now < from) visitor.begin(machine);
      if (group >= 0) part()[1] += counted;
    },
    enter: (machine, stack, f, how) => {
      const depth = stack.depth - 1;
      if (group < 0) { stack.stamp = -1; return; }
      const top = how === INTERRUPTED || depth === 0 ? -1 : stack.a[depth - 1];
      const parent = how === INTERRUPTED ? root(group, kt.INTERRUPT) : top >= 0 ? top : stack.root;
      const node = child(parent, page(f), how, top >= 0 ? nodes.f[top] : kt.NONE);
      stack.a[depth] = node;
      if (machine.now >= from) {
        if (!active) visitor.begin(machine);
        if (seen[node] !== epoch) touch(node);
        calls[node]++;
      }
    },
    ended: (machine, stack, top) => {
      if (!active && machine.now >= from) visitor.begin(machine);
      if (group < 0 || !active) return;
      const e = stack.segments[stack.segment] - stack.b[top], at = nodes.account[stack.a[top]];
      if (top < stack.base) theirs.push([machine.running, at, e]);
      else if (at >= 0) bucketsOf(at, e, stack.begin[top]);
    },
    // Begins counting: open frames count as begun before.
    begin: (machine) => {
      if (active) return;
      active = true;
      for (const s of machine.stacks) { s.base = s.depth; s.b.fill(0); s.segments.fill(0); }
      began();
    },
  };
  // Counts a chunk from `begin` up to `until`.
  const chunk = (opened, begin, until) => {
    epoch++;
    [touched, touchedAccounts, touchedBuckets, theirs, times] = [[], [], [], [], new Map()];
    const machine = kt.machineAt(opened);
    from = begin;
    active = opened.begin >= begin;
    group = groupOf(machine.regions);
    stamp++;
    const bases = () => machine.stacks.map((s) => s.base);
    let base = active ? bases() : null;
    began = () => { base = bases(); };
    kt.replay(machine, opened, until, visitor);
    const left = machine.stacks.map((s) => ({ carried: s.base, portions: Array.from({ length: s.depth }, (_, i) => {
      let segment = 0;
      for (let k = 0; k <= i; k++) if (s.how[k] === INTERRUPTED) segment++;
      return s.segments[segment] - s.b[i];
    }), begins: Array.from(s.begin.subarray(s.base, s.depth)) }));
    const out = {
      begin: Math.max(begin, opened.begin), end: machine.now, base: base || bases(), theirs, left, times,
      nodes: Int32Array.from(touched), calls: Float64Array.from(touched, (n) => calls[n]), own: own.map((column) => Float64Array.from(touched, (n) => column[n])),
      accounts: Int32Array.from(touchedAccounts), ended: Float64Array.from(touchedAccounts, (a) => ended[a]), elapsed: Float64Array.from(touchedAccounts, (a) => elapsed[a]),
      slowest: Float64Array.from(touchedAccounts, (a) => slowest[a]), at: Float64Array.from(touchedAccounts, (a) => slowestAt[a]),
      cells: Int32Array.from(touchedBuckets), counts: Float64Array.from(touchedBuckets, (c) => buckets[c]),
    };
    for (const cell of touchedBuckets) buckets[cell] = 0;
    return out;
  };
  return { chunk, nodes, accounts };
};
