// Colors by subsystem: Paul Tol's "light" scheme, which is distinguishable with color vision deficiency and readable with black
// text. Nodes that are no kernel function have colors of their own.
kt.SUBSYSTEMS = [
  ["net", "#77aadd"], ["fs", "#eedd88"], ["mm", "#44bb99"], ["kernel", "#bbcc33"], ["arch", "#99ddff"],
  ["drivers", "#ffaabb"], ["block", "#aaaa00"], ["lib", "#c9d3b0"], ["other", "#cfc6d6"], ["unknown", "#c4c9d0"],
];
kt.SPECIAL = { interrupt: "#ee8866", user: "#b9a6e3", thread: "#5c6773", smaller: "#9aa1aa", idle: "#8d949d" };
const known = new Map(kt.SUBSYSTEMS);
kt.subsystem = (f) => {
  const file = kt.file(f);
  const slash = file.indexOf("/");
  if (slash <= 0) return "unknown";
  const top = file.slice(0, slash);
  if (top === "include") {
    const below = file.split("/")[1];
    return below === "net" ? "net" : below === "linux" || below === "asm-generic" ? "kernel" : "other";
  }
  return known.has(top) && top !== "unknown" ? top : "other";
};
const shades = new Map();
// `how` makes the first frame of an interrupt visible; similar names differ a little.
kt.color = (f, how) => {
  const key = f * 2 + (how === "interrupt" ? 1 : 0);
  let color = shades.get(key);
  if (color) return color;
  let base, shade = 0;
  if (how === "interrupt" || f === kt.INTERRUPT) base = kt.SPECIAL.interrupt;
  else if (f === kt.USER || kt.module(f)) base = kt.SPECIAL.user;
  else if (f === kt.SMALLER) base = kt.SPECIAL.smaller;
  else if (f === kt.IDLE) base = kt.SPECIAL.idle;
  else if (f <= kt.THREAD) base = kt.SPECIAL.thread;
  else base = known.get(f >= 0 ? kt.subsystem(f) : "unknown");
  if (f >= 0) {
    let hash = 0;
    for (const c of kt.name(f)) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
    shade = (hash % 7 - 3) * 4;
  }
  const part = (at) => Math.max(0, Math.min(255, parseInt(base.slice(at, at + 2), 16) + shade));
  color = "rgb(" + part(1) + "," + part(3) + "," + part(5) + ")";
  shades.set(key, color);
  return color;
};
// Less is blue and better, more is orange and worse; `part` is from -1 (gone) to 1 (new).
kt.changeColor = (part) => {
  const mix = (a, b, by) => a.map((from, i) => Math.round(from + (b[i] - from) * by));
  const by = Math.min(1, Math.sqrt(Math.abs(part)));
  return "rgb(" + mix([226, 228, 231], part < 0 ? [77, 166, 214] : [242, 153, 92], by).join(",") + ")";
};
// Color of text on a frame: black on all but the darkest colors.
kt.ink = (f) => (f <= kt.THREAD ? "#ffffff" : "#14171b");
kt.swatches = (place, rows) => {
  place.replaceChildren(...rows.map(([name, color]) => {
    const swatch = kt.make("i");
    swatch.style.background = color;
    return kt.make("span", {}, swatch, name);
  }));
};
// Only the subsystems that occur.
kt.legend = () => {
  const found = new Set(kt.data.names.map((_, f) => (kt.module(f) ? "" : kt.subsystem(f))));
  const rows = kt.SUBSYSTEMS.filter(([name]) => found.has(name));
  const named = rows.map(([name, color]) => [name === "unknown" ? "no source path" : name, color]);
  return [...named, ["interrupt", kt.SPECIAL.interrupt], ["user", kt.SPECIAL.user]];
};
