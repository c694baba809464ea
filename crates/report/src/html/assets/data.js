// Packed document: columns of numbers, see data.rs. Codes below zero are not functions.
kt.NONE = -1; kt.USER = -2; kt.INTERRUPT = -3; kt.IDLE = -4; kt.UNATTRIBUTED = -5; kt.SMALLER = -6;
kt.OTHERS = -7; kt.THREAD = -16;

// Decompresses a zlib stream, given in base64 or as bytes.
kt.inflate = async (bytes) => {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the page's data; Chrome 80, Firefox 113 or Safari 16.4 and later can");
  }
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};
kt.bytes = (base64) => {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
};
kt.load = () => kt.inflate(kt.bytes(byId("kt-data").textContent.trim()));

// Sampled times have an error, and calls only if counted by other means.
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

// Returns a function's name in the source, without compilers' suffixes: kerntune_profile::source_name.
kt.sourceName = (symbol) => {
  for (let name = symbol; ; ) {
    const dot = name.lastIndexOf("."), tail = name.slice(dot + 1);
    if (dot <= 0 || !(/^[0-9]+$/.test(tail) || ["isra", "constprop", "part", "cold", "llvm", "lto_priv", "__uniq", "localalias"].includes(tail))) return name;
    name = name.slice(0, dot);
  }
};
// Maps a second profile's functions to the numbers of the first: same name, source and module. If the kernels disagree on the
// source file, or one has a copy or a part of the function, the only function of that name in the source is used.
kt.adopt = (data, other) => {
  const text = (d, list, all, f) => (list[f] >= 0 ? all[list[f]] : "");
  const module = (d, f) => text(d, d.module, d.modules, f), file = (d, f) => text(d, d.file, d.files, f);
  const key = (d, f) => d.names[f] + "\n" + file(d, f) + "\n" + module(d, f);
  const loose = [(d, f) => d.names[f] + "\n\n" + module(d, f), (d, f) => kt.sourceName(d.names[f]) + "\n" + file(d, f).replace(/.*\//, "") + "\n" + module(d, f), (d, f) => kt.sourceName(d.names[f]) + "\n\n" + module(d, f)];
  const known = new Map(data.names.map((_, f) => [key(data, f), f]));
  // Looser keys match only if they are unique; a source name first means the function itself.
  const alone = loose.map((of) => {
    const found = new Map();
    data.names.forEach((name, f) => {
      const word = of(data, f), there = found.get(word), whole = kt.sourceName(name) === name;
      if (there === undefined || (whole && !there.whole)) found.set(word, { f, whole });
      else if (whole === there.whole) there.f = -1;
    });
    return found;
  });
  const many = new Set(), once = new Set();
  other.names.forEach((name, f) => { const word = loose[0](other, f); (once.has(word) ? many : once).add(word); });
  const near = (f) => {
    const found = (many.has(loose[0](other, f)) ? [] : loose).map((of, i) => alone[i].get(of(other, f))).find((one) => one && one.f >= 0);
    return found && found.f;
  };
  const place = (all, word) => { const at = all.indexOf(word); return at >= 0 ? at : all.push(word) - 1; };
  const functions = other.names.map((name, f) => {
    let at = known.get(key(other, f)) ?? near(f);
    if (at === undefined) {
      at = data.names.push(name) - 1;
      known.set(key(other, f), at);
      data.file.push(other.file[f] >= 0 ? place(data.files, other.files[other.file[f]]) : -1);
      data.module.push(other.module[f] >= 0 ? place(data.modules, other.modules[other.module[f]]) : -1);
    }
    return at;
  });
  const comms = other.comms.map((comm) => place(data.comms, comm));
  const code = (f) => (f >= 0 ? functions[f] : f <= kt.THREAD ? kt.THREAD - comms[kt.THREAD - f] : f);
  for (const group of other.groups) {
    for (const column of [group.tree.f, group.functions.f, group.arcs.from, group.arcs.to, group.histograms.f, group.histograms.c]) {
      for (let i = 0; i < column.length; i++) column[i] = code(column[i]);
    }
  }
  return other.groups;
};

// Adds up several groups: functions, arcs and histograms.
kt.tablesOf = (groups) => {
  const hows = kt.data.hows;
  const functions = new Map(), arcs = new Map(), histograms = new Map();
  for (const { functions: t, arcs: a, histograms: h } of groups) {
    for (let i = 0; i < t.f.length; i++) {
      let row = functions.get(t.f[i]);
      if (!row) functions.set(t.f[i], row = { f: t.f[i], calls: 0, ended: 0, net: 0, elapsed: 0, slowest: -1, at: 0 });
      if (t.ended[i] > 0 && (t.slowest[i] > row.slowest || (t.slowest[i] === row.slowest && t.at[i] < row.at))) {
        row.slowest = t.slowest[i];
        row.at = t.at[i];
      }
      row.calls += t.calls[i];
      row.ended += t.ended[i];
      row.net += t.net[i];
      row.elapsed += t.elapsed[i];
    }
    for (let i = 0; i < a.from.length; i++) {
      const key = a.from[i] + " " + a.to[i] + " " + a.h[i];
      let arc = arcs.get(key);
      if (!arc) arcs.set(key, arc = { from: a.from[i], to: a.to[i], how: hows[a.h[i]], calls: 0, ended: 0, elapsed: 0 });
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
  return { functions, histograms, ...kt.beside(arcs.values()) };
};
// Arcs by callee, and by caller.
kt.beside = (arcs) => {
  const callers = new Map(), callees = new Map();
  const into = (map, key, arc) => (map.has(key) ? map.get(key).push(arc) : map.set(key, [arc]));
  for (const arc of arcs) {
    into(callers, arc.to, arc);
    into(callees, arc.from, arc);
  }
  return { callers, callees };
};
// Lower bound of a histogram's bucket: kerntune_profile::bounds.
kt.bucket = (bucket) => (bucket < 4 ? bucket : (4 + bucket % 4) * 2 ** (Math.floor(bucket / 4) - 1));
// Bucket of a value: kerntune_profile::bucket_of.
kt.bucketOf = (n) => {
  if (n < 4) return n;
  let e = 31 - Math.clz32(n);
  if (n >= 0x80000000) { e = Math.floor(Math.log2(n)); if (2 ** e > n) e--; else if (2 ** (e + 1) <= n) e++; }
  return 4 * (e - 1) + Math.floor(n / 2 ** (e - 2)) % 4;
};
