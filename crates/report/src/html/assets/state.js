// State of the page. All of it is in the address, so that views can be linked and Back works.
kt.state = {
  region: 0, fn: -1, weight: "0", mode: "down", show: "flame", zoom: "", from: null, to: null, sel: null, ops: "", q: "", profile: "a", sort: "", tab: "calls",
};
kt.listeners = [];
// `keys`: parts of the state that a view depends on; "view" stands for the shown tables and trees, which depend on all.
kt.on = (keys, act) => kt.listeners.push({ keys, act });
kt.fire = (changed) => {
  for (const { keys, act } of kt.listeners) {
    if (keys.some((key) => changed.includes(key))) act(changed);
  }
};
// These change with every movement: they replace the address without a step of history.
const PASSING = ["from", "to", "q"];
kt.set = (change) => {
  const changed = Object.keys(change).filter((key) => kt.state[key] !== change[key]);
  if (changed.length === 0) return;
  const step = !changed.every((key) => PASSING.includes(key));
  if (step) kt.save(true);
  Object.assign(kt.state, change);
  // Immediately, so that Forward finds the step even if Back comes right after it.
  if (step) kt.save(false);
  kt.fire(changed);
  clearTimeout(kt.saving);
  kt.saving = setTimeout(() => kt.save(false), 250);
};
kt.link = () => {
  const { region, fn, weight, mode, show, zoom, from, to, sel, ops, q, profile, sort, tab } = kt.state;
  const words = new URLSearchParams();
  const put = (key, value, unless = "") => { if (value !== unless && value !== null) words.set(key, value); };
  put("region", kt.data.views[region].name);
  if (fn >= 0) words.set("fn", kt.name(fn));
  put("weight", weight, "0");
  put("mode", mode, "down");
  put("show", show, "flame");
  put("zoom", zoom);
  if (from !== null) words.set("time", Math.round(from) + "-" + Math.round(to));
  put("sel", sel);
  put("ops", ops);
  put("q", q);
  put("profile", profile, "a");
  put("sort", sort);
  put("tab", tab, "calls");
  put("theme", root.dataset.theme || null);
  return "#" + words;
};
// Before a step of history is added, pending changes are written to the current one.
kt.save = (step) => {
  if (!kt.data || kt.restoring) return;
  history.replaceState(null, "", kt.link());
  if (step) history.pushState(null, "", kt.link());
};
// `zoom` and `ops` hold names, since function numbers differ between pages.
kt.restore = () => {
  const words = new URLSearchParams(location.hash.slice(1));
  const one = (key, values) => (values.includes(words.get(key)) ? words.get(key) : values[0]);
  const region = kt.data.views.findIndex((view) => view.name === words.get("region"));
  const fn = kt.data.names.indexOf(words.get("fn"));
  const span = (key) => { const [a, b] = (words.get(key) || "").split("-").map(Number); return b > a ? [a, b] : null; };
  const time = span("time"), sel = span("sel");
  if (words.get("theme") === "dark" || words.get("theme") === "light") root.dataset.theme = words.get("theme");
  return {
    region: region < 0 ? 0 : region,
    fn: fn >= 0 ? fn : kt.data.names.length > 0 ? 0 : -1,
    weight: one("weight", kt.weights().map((weight) => weight.id)),
    mode: one("mode", ["down", "up", "from", "to"]),
    show: one("show", ["flame", "table"]),
    zoom: words.get("zoom") || "",
    from: time && time[0],
    to: time && time[1],
    sel: sel && sel.join("-"),
    ops: words.get("ops") || "",
    q: words.get("q") || "",
    profile: kt.data.other ? one("profile", ["a", "b", "both", "diff"]) : "a",
    sort: words.get("sort") || "",
    tab: one("tab", ["calls", "histogram", "source"]),
  };
};
window.addEventListener("popstate", () => {
  if (!kt.ready) return;
  clearTimeout(kt.saving);
  kt.restoring = true;
  try { kt.set(kt.restore()); } finally { kt.restoring = false; }
  clearTimeout(kt.saving);
});
kt.selection = () => (kt.state.sel ? kt.state.sel.split("-").map(Number) : null);
// Operations on the paths: [["drop", f], …]; by name in the address.
kt.ops = () => kt.state.ops.split(";").filter(Boolean).map((op) => {
  const at = op.indexOf(":");
  return [op.slice(0, at), kt.numbered(op.slice(at + 1))];
}).filter(([what, f]) => ["drop", "merge", "focus"].includes(what) && f !== undefined);
kt.worded = (f) => (f >= 0 ? kt.name(f).replace(/[;,:%!~]/g, (c) => "%" + c.charCodeAt(0).toString(16)) : f <= kt.THREAD ? "~" + encodeURIComponent(kt.data.comms[kt.THREAD - f]).replace(/[!~]/g, (c) => "%" + c.charCodeAt(0).toString(16)) : "!" + -f);
kt.numbered = (word) => {
  if (word.startsWith("!")) return -Number(word.slice(1));
  try { word = decodeURIComponent(word); } catch { return undefined; }
  if (word.startsWith("~")) { const at = kt.data.comms.indexOf(word.slice(1)); return at < 0 ? undefined : kt.THREAD - at; }
  if (!kt.byName) kt.byName = new Map(kt.data.names.map((name, f) => [name, f]).reverse());
  return kt.byName.get(word);
};
kt.setOps = (ops) => kt.set({ ops: ops.map(([what, f]) => what + ":" + kt.worded(f)).join(";") });
kt.addOp = (what, f) => kt.setOps([...kt.ops().filter(([w, g]) => !(w === what && g === f)), [what, f]]);
// Weights that the width of a frame can stand for: a column of the tree, and the format of its sums.
kt.weights = () => {
  const all = [{ id: "0", column: 0, title: kt.data.exact ? "instructions" : "time", unit: kt.withUnit, bare: kt.amount }];
  if (kt.data.weights) {
    const plus = (id, title, word) => all.push({ id, column: Number(id), title, unit: (n) => kt.count(n) + " " + word, bare: kt.count });
    plus("1", "taken branches", "branches");
    plus("2", "L1I misses (model)", "L1I misses");
    plus("3", "iTLB misses (model)", "iTLB misses");
  }
  return all;
};
kt.weight = () => kt.weights().find((weight) => weight.id === kt.state.weight) || kt.weights()[0];
