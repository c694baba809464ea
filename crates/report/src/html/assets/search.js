// Search: matches are highlighted and counted; the buttons beside the box go to the previous and next one.
let asked = "", isWanted = null;
kt.wanted = () => {
  const text = kt.state.q.trim().toLowerCase();
  if (text.length < 2) return null;
  if (text !== asked) {
    asked = text;
    const hits = new Set(kt.data.names.map((name, f) => (name.toLowerCase().includes(text) ? f : -1)));
    isWanted = (f) => f >= 0 && hits.has(f);
  }
  return isWanted;
};
kt.search = () => {
  const box = byId("search"), found = byId("found");
  let places = [], at = -1;
  const count = () => {
    const wanted = kt.wanted();
    places = [];
    at = -1;
    for (const id of ["before", "next"]) byId(id).disabled = !wanted;
    if (!wanted) { found.textContent = ""; return; }
    const column = kt.weight().column, raws = kt.state.profile === "diff" ? kt.sides.flatMap((side) => side.raws) : kt.view.raws;
    let sum = 0, whole = 0;
    const functions = new Set(), ways = new Map();
    for (const raw of raws) {
      for (const node of raw.roots) whole += raw.sums[column][node];
      for (let node = 0; node < raw.n; node++) if (wanted(raw.f[node])) functions.add(raw.f[node]);
      for (const node of kt.outermost(raw, wanted)) {
        sum += raw.sums[column][node];
        const words = [];
        for (let up = node; up >= 0; up = raw.up[up]) words.push(kt.worded(raw.f[up]) + (raw.how[up] ? ":" + raw.how[up] : ""));
        const way = words.reverse().join(",");
        const known = ways.get(way);
        if (known) known.weight += raw.sums[column][node];
        else ways.set(way, { way, f: raw.f[node], weight: raw.sums[column][node] });
      }
    }
    if (kt.state.mode === "down") places = [...ways.values()].sort((a, b) => b.weight - a.weight);
    else {
      const weight = (f) => { const row = kt.view.functions.get(f); return row ? row.net : 0; };
      places = [...functions].sort((a, b) => weight(b) - weight(a)).map((f) => ({ way: kt.state.mode === "up" ? kt.worded(f) : "", f }));
    }
    // Time below a match counts once.
    found.textContent = kt.grouped(functions.size) + (functions.size === 1 ? " function, " : " functions, ") + kt.grouped(ways.size) + (ways.size === 1 ? " path, " : " paths, ") + kt.percent(sum, whole);
    for (const id of ["before", "next"]) byId(id).disabled = places.length === 0;
  };
  const step = (by) => {
    if (places.length === 0) return;
    at = (at + by + places.length) % places.length;
    const place = places[at];
    const base = found.textContent.replace(/^.*? · /, "");
    kt.set({ zoom: place.way, fn: place.f });
    found.textContent = kt.grouped(at + 1) + "/" + kt.grouped(places.length) + " · " + base;
  };
  box.value = kt.state.q;
  box.addEventListener("input", () => kt.set({ q: box.value }));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { box.value = ""; kt.set({ q: "" }); }
    if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
  });
  byId("next").addEventListener("click", () => step(1));
  byId("before").addEventListener("click", () => step(-1));
  const soon = kt.soon(count);
  kt.on(["q"], () => { if (box.value !== kt.state.q) box.value = kt.state.q; count(); });
  kt.on(["view", "weight", "mode"], soon);
  window.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); box.focus(); }
  });
  count();
};
