// The packed document: columns of numbers, see data.rs. Codes below zero are no functions.
kt.NONE = -1; kt.USER = -2; kt.INTERRUPT = -3; kt.IDLE = -4; kt.UNATTRIBUTED = -5; kt.SMALLER = -6;
kt.OTHERS = -7; kt.THREAD = -16;

kt.load = async () => {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the page's data; Chrome 80, Firefox 113 or Safari 16.4 and later can");
  }
  const text = atob(byId("kt-data").textContent.trim());
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

// Sampled times have an error, and calls only if they were counted besides.
kt.isSampled = () => kt.data.sample_ns > 0;
kt.hasCalls = () => kt.data.calls;
kt.error = (ns) => Math.sqrt(Math.max(1, ns / kt.data.sample_ns)) * kt.data.sample_ns;

kt.name = (f) => {
  if (f >= 0) return kt.data.names[f];
  if (f <= kt.THREAD) return "thread " + kt.data.comms[kt.THREAD - f];
  return { [-1]: "(nothing)", [-2]: "user mode", [-3]: "interrupts", [-4]: "idle task", [-5]: "unattributed", [-6]: "smaller", [-7]: "other callers" }[f] || "?";
};
kt.file = (f) => (f >= 0 && kt.data.file[f] >= 0 ? kt.data.files[kt.data.file[f]] : "");
kt.module = (f) => (f >= 0 && kt.data.module[f] >= 0 ? kt.data.modules[kt.data.module[f]] : "");

// What a view is the sum of: functions, arcs and histograms over its groups.
kt.viewOf = (index) => {
  const data = kt.data, about = data.views[index];
  const functions = new Map();
  const arcs = new Map();
  const histograms = new Map();
  for (const number of about.groups) {
    const { functions: t, arcs: a, histograms: h } = data.groups[number];
    for (let i = 0; i < t.f.length; i++) {
      let row = functions.get(t.f[i]);
      if (!row) functions.set(t.f[i], row = { f: t.f[i], calls: 0, ended: 0, net: 0, elapsed: 0, max: 0, min: Infinity, slowest: -1, at: 0 });
      if (t.ended[i] > 0) {
        row.max = Math.max(row.max, t.max[i]);
        row.min = Math.min(row.min, t.min[i]);
        if (t.slowest[i] > row.slowest || (t.slowest[i] === row.slowest && t.at[i] < row.at)) {
          row.slowest = t.slowest[i];
          row.at = t.at[i];
        }
      }
      row.calls += t.calls[i];
      row.ended += t.ended[i];
      row.net += t.net[i];
      row.elapsed += t.elapsed[i];
    }
    for (let i = 0; i < a.from.length; i++) {
      const key = a.from[i] + " " + a.to[i] + " " + a.h[i];
      let arc = arcs.get(key);
      if (!arc) arcs.set(key, arc = { from: a.from[i], to: a.to[i], how: data.hows[a.h[i]], calls: 0, ended: 0, elapsed: 0 });
      arc.calls += a.calls[i];
      arc.ended += a.ended[i];
      arc.elapsed += a.elapsed[i];
    }
    for (let i = 0; i < h.f.length; i++) {
      let rows = histograms.get(h.f[i]);
      if (!rows) histograms.set(h.f[i], rows = []);
      rows.push({ caller: h.c[i], bucket: h.b[i], count: h.n[i] });
    }
  }
  const callers = new Map(), callees = new Map();
  const into = (map, key, arc) => (map.has(key) ? map.get(key).push(arc) : map.set(key, [arc]));
  for (const arc of arcs.values()) {
    into(callers, arc.to, arc);
    into(callees, arc.from, arc);
  }
  return { about, functions, callers, callees, histograms, tree: kt.treeOf(about.groups) };
};
// Least time of a histogram's bucket, ns: kerntune_profile::bounds.
kt.bucket = (bucket) => (bucket < 4 ? bucket : (4 + bucket % 4) * 2 ** (Math.floor(bucket / 4) - 1));
