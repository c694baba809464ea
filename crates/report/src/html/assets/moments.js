// Timeline data with running sums for fast drawing. Position `u` counts recorded time only: gaps between recorded stretches have
// no width.
kt.moments = () => {
  const time = kt.data.time;
  if (!time || time.spans.length === 0) return null;
  let length = 0;
  const spans = time.spans.map(([begin, end, first, bins]) => {
    const span = { begin, end, first, bins, u: length };
    length += end - begin;
    return span;
  });
  const toU = (t) => {
    for (const span of spans) if (t < span.end) return span.u + Math.max(0, t - span.begin);
    return length;
  };
  const toTime = (u) => {
    const span = spans.find((s) => u < s.u + s.end - s.begin) || spans[spans.length - 1];
    return span.begin + Math.min(span.end - span.begin, u - span.u);
  };
  // Running sums over bins by lane, kernel and user separately.
  const last = spans[spans.length - 1];
  const count = last.first + last.bins;
  const edges = new Float64Array(count + 1);
  for (const span of spans) {
    for (let n = 0; n <= span.bins; n++) edges[span.first + n] = span.u + (span.end - span.begin) * n / span.bins;
  }
  const empty = (n) => Array.from({ length: n }, () => new Float64Array(count + 1));
  const run = (sum) => { for (let n = 0; n < count; n++) sum[n + 1] += sum[n]; };
  const sums = time.lanes.map(() => empty(2));
  for (let i = 0, bin = 0; i < time.bins.b.length; i++) {
    bin += time.bins.b[i];
    const l = time.bins.l[i];
    sums[l >> 1][l & 1][bin + 1] += time.bins.n[i];
  }
  for (const pair of sums) pair.forEach(run);
  // Returns the time of a lane up to `u`, in proportion within a bin.
  const upTo = (sum, u, hint) => {
    let low = hint || 0, high = count;
    while (low < high) { const m = (low + high) >> 1; if (edges[m + 1] <= u) low = m + 1; else high = m; }
    if (low >= count) return sum[count];
    const part = (u - edges[low]) / (edges[low + 1] - edges[low] || 1);
    return sum[low] + (sum[low + 1] - sum[low]) * Math.max(0, part);
  };
  const stretches = (columns, about) => {
    const out = [];
    for (let i = 0, at = 0; i < columns.b.length; i++) {
      at += columns.b[i];
      out.push({ begin: at, end: at + columns.n[i], ...about(i) });
      at += columns.n[i];
    }
    return out.map((s) => ({ ...s, u0: toU(s.begin), u1: toU(s.begin) + s.end - s.begin }));
  };
  const slices = (columns) => stretches(columns, (i) => ({ lane: columns.l[i] >> 1, user: columns.l[i] & 1, cpu: columns.c ? columns.c[i] : 0 }));
  // With several CPUs: running sums by kind, and slices.
  const cpuSlices = (columns) => stretches(columns, (i) => ({ kind: columns.k[i], lane: columns.l[i] }));
  const cpus = (time.cpus || []).map((cpu) => {
    const sums = empty(6);
    for (let i = 0, bin = 0; i < cpu.bins.b.length; i++) {
      bin += cpu.bins.b[i];
      sums[cpu.bins.k[i]][bin + 1] += cpu.bins.n[i];
    }
    sums.forEach(run);
    return { sums, slices: cpuSlices(cpu.slices) };
  });
  const places = time.places.map(([label, f, begin, end], number) => ({ label, function: f, begin, end, number, u0: toU(begin), u1: toU(begin) + end - begin }));
  // Converts trace data to the page's scale.
  const placed = (w) => ({
    ...w, u0: toU(w.begin), u1: toU(w.begin) + w.end - w.begin,
    calls: w.calls.map((c) => { const u0 = toU(c.begin); return { ...c, u0, u1: u0 + c.end - c.begin }; }),
    slices: w.slices.map((s) => { const u0 = toU(s.begin); return { ...s, u0, u1: u0 + s.end - s.begin }; }),
    cpus: w.cpus.map((list) => list.map((s) => { const u0 = toU(s.begin); return { ...s, u0, u1: u0 + s.end - s.begin }; })),
  });
  const regions = time.regions.map(([name, begin, end, depth, operations]) =>
    ({ name, begin, end, depth, operations, u0: toU(begin), u1: toU(end) }));
  return { spans, length, toU, toTime, count, edges, sums, upTo, slices: slices(time.slices), places, placed, regions, cpus, lanes: time.lanes };
};
