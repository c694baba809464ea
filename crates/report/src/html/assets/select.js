// Selection of time as groups of tables, like those of the document, computed from the chunks on the page.
kt.chunks = () => {
  if (kt.known) return kt.known;
  const time = kt.data.time;
  if (!time || !time.chunks) return null;
  const { b, e, n, o, l } = time.chunks;
  const all = [];
  for (let i = 0, at = 0, offset = 0; i < b.length; i++) {
    at += b[i];
    all.push({ number: i, begin: at, end: at + e[i], events: n[i], offset: o[i], bytes: l[i] });
    at += e[i];
  }
  kt.known = all;
  return all;
};
kt.hasChunk = (chunk) => chunk.offset >= 0;
// Cache of recently unpacked chunks.
const opened = new Map();
kt.opened = async (chunk) => {
  let found = opened.get(chunk.number);
  if (!found) {
    found = kt.openChunk(await kt.source.chunk(chunk));
    opened.set(chunk.number, found);
    if (opened.size > 8) opened.delete(opened.keys().next().value);
  }
  return found;
};
kt.between = (from, to) => (kt.chunks() || []).filter((chunk) => chunk.end >= from && chunk.begin < to);
// If every chunk is on the page, every selection can be added up.
kt.isWhole = () => Boolean(kt.chunks()) && kt.chunks().every((chunk) => chunk.offset !== -1);
kt.breathe = () => new Promise((done) => { const { port1, port2 } = new MessageChannel(); port1.onmessage = done; port2.postMessage(0); });
const records = new Map();
kt.adder = () => {
  const counter = kt.counter();
  const { nodes, accounts } = counter;
  // One chunk at a time, since the counter's tables are shared.
  let queue = Promise.resolve();
  const record = (chunk, from, to) => {
    const whole = chunk.begin >= from && chunk.end < to;
    if (whole && records.has(chunk.number)) return records.get(chunk.number);
    const made = queue.then(async () => {
      const found = whole && records.get(chunk.number);
      if (found) return found;
      const out = counter.chunk(await kt.opened(chunk), Math.max(from, chunk.begin), to);
      if (whole) records.set(chunk.number, out);
      return out;
    });
    queue = made.catch(() => {});
    return made;
  };
  // `isStale` returns true once the result is no longer needed.
  const select = async (from, to, isStale, progress) => {
    // A chunk without the page's regions adds nothing; one left out for lack of space would be missing.
    const list = [], chunks = kt.between(from, to).filter((chunk) => chunk.offset !== -2);
    if (!chunks.every(kt.hasChunk)) throw new Error("some of its events are not on the page; kerntune view " + kt.data.id + " has all of them");
    let since = performance.now();
    for (const chunk of chunks) {
      list.push(await record(chunk, from, to));
      if (performance.now() - since > 25) {
        progress(list.length / chunks.length);
        await kt.breathe();
        if (isStale()) return null;
        since = performance.now();
      }
    }
    return add(list);
  };
  let cells = new Float64Array(0);
  const add = (list) => {
    const columns = kt.data.weights ? 4 : 1;
    const own = Array.from({ length: columns }, () => new Float64Array(nodes.n)), calls = new Float64Array(nodes.n);
    const ended = new Float64Array(accounts.n), elapsed = new Float64Array(accounts.n), slowest = new Float64Array(accounts.n).fill(-1), at = new Float64Array(accounts.n);
    if (cells.length < accounts.n * 256) cells = new Float64Array(accounts.n * 256);
    const touched = [], times = kt.data.groups.map(() => [0, 0, 0]);
    const put = (cell, count) => { if (cells[cell] === 0) touched.push(cell); cells[cell] += count; };
    const end = (account, e, begin) => {
      ended[account]++;
      elapsed[account] += e;
      if (e > slowest[account] || (e === slowest[account] && begin < at[account])) { slowest[account] = e; at[account] = begin; }
      put(account * 256 + kt.bucketOf(e), 1);
    };
    let stacks = null, last = -1;
    for (const r of list) {
      for (let i = 0; i < r.nodes.length; i++) {
        const node = r.nodes[i];
        calls[node] += r.calls[i];
        for (let c = 0; c < columns; c++) own[c][node] += r.own[c][i];
      }
      for (let i = 0; i < r.accounts.length; i++) {
        const a = r.accounts[i];
        ended[a] += r.ended[i];
        elapsed[a] += r.elapsed[i];
        if (r.slowest[i] > slowest[a] || (r.slowest[i] === slowest[a] && r.at[i] < at[a])) { slowest[a] = r.slowest[i]; at[a] = r.at[i]; }
      }
      for (let i = 0; i < r.cells.length; i++) put(r.cells[i], r.counts[i]);
      for (const [group, sum] of r.times) sum.forEach((figure, i) => { times[group][i] += figure; });
      // Calls open at the chunk's begin: known from the previous chunk, or cut.
      if (!stacks || last !== r.begin) stacks = r.base.map((depth) => Array.from({ length: depth }, () => null));
      for (const [thread, account, e] of r.theirs) {
        const open = stacks[thread].pop();
        if (open && account >= 0) end(account, open.e + e, open.begin);
      }
      r.left.forEach(({ carried, portions, begins }, thread) => {
        const stack = stacks[thread];
        stack.length = Math.min(stack.length, carried);
        for (let i = 0; i < carried; i++) if (stack[i]) stack[i].e += portions[i];
        for (let i = carried; i < portions.length; i++) stack[i] = { e: portions[i], begin: begins[i - carried] };
      });
      // Open calls are copied, since a record may be used again.
      stacks = stacks.map((stack) => stack.map((open) => open && { ...open }));
      last = r.end;
    }
    const groups = kt.data.groups.map(() => ({
      tree: { raw: null }, functions: { f: [], calls: [], ended: [], net: [], elapsed: [], slowest: [], at: [] },
      arcs: { from: [], to: [], h: [], calls: [], ended: [], elapsed: [] }, histograms: { f: [], c: [], b: [], n: [] },
    }));
    const tables = groups.map(() => ({ functions: new Map(), arcs: new Map() }));
    const row = (group, f) => {
      const { functions } = tables[group];
      if (!functions.has(f)) functions.set(f, { calls: 0, ended: 0, net: 0, elapsed: 0, slowest: -1, at: 0 });
      return functions.get(f);
    };
    const used = new Uint8Array(nodes.n);
    for (let n = nodes.n - 1; n >= 0; n--) {
      if (calls[n] > 0 || own.some((column) => column[n] > 0)) used[n] = 1;
      if (used[n] && nodes.parent[n] >= 0) used[nodes.parent[n]] = 1;
      if (!used[n] || nodes.f[n] < 0) continue;
      const r = row(nodes.group[n], nodes.f[n]), account = nodes.account[n], { arcs } = tables[nodes.group[n]];
      r.calls += calls[n];
      r.net += own[0][n];
      arcs.set(account, (arcs.get(account) || 0) + calls[n]);
    }
    for (let a = 0; a < accounts.n; a++) {
      if (ended[a] === 0) continue;
      const r = row(accounts.group[a], accounts.f[a]), { arcs } = tables[accounts.group[a]];
      r.ended += ended[a];
      r.elapsed += elapsed[a];
      if (slowest[a] > r.slowest || (slowest[a] === r.slowest && at[a] < r.at)) { r.slowest = slowest[a]; r.at = at[a]; }
      if (!arcs.has(a)) arcs.set(a, 0);
    }
    tables.forEach(({ functions, arcs }, g) => {
      const t = groups[g].functions, out = groups[g].arcs;
      for (const [f, r] of functions) {
        t.f.push(f);
        for (const key of ["calls", "ended", "net", "elapsed", "slowest", "at"]) t[key].push(r[key]);
      }
      for (const [a, count] of arcs) {
        out.from.push(accounts.caller[a]); out.to.push(accounts.f[a]); out.h.push(accounts.how[a]);
        out.calls.push(count); out.ended.push(ended[a]); out.elapsed.push(elapsed[a]);
      }
    });
    for (const cell of touched) {
      const a = Math.floor(cell / 256), h = groups[accounts.group[a]].histograms;
      h.f.push(accounts.f[a]); h.c.push(accounts.caller[a]); h.b.push(cell % 256); h.n.push(cells[cell]);
      cells[cell] = 0;
    }
    groups.forEach((group, g) => {
      const of = [], into = new Int32Array(nodes.n);
      for (let n = 0; n < nodes.n; n++) if (used[n] && nodes.group[n] === g) { into[n] = of.length; of.push(n); }
      group.tree.raw = kt.indexed({
        n: of.length, f: Int32Array.from(of, (n) => nodes.f[n]), how: Uint8Array.from(of, (n) => nodes.how[n]), calls: Float64Array.from(of, (n) => calls[n]),
        own: own.map((column) => Float64Array.from(of, (n) => column[n])), up: Int32Array.from(of, (n) => (nodes.parent[n] < 0 ? -1 : into[nodes.parent[n]])),
      });
    });
    return { groups, times };
  };
  return { select, record };
};
