// What is chosen. It is in the address, too, so that a view can be linked to.
kt.state = { region: 0, fn: -1, weight: "0", mode: "down", zoom: "", from: null, to: null };
kt.listeners = [];
kt.past = [];
// `keys`: what of the state a view depends on.
kt.on = (keys, act) => kt.listeners.push({ keys, act });
kt.set = (change) => {
  const changed = Object.keys(change).filter((key) => kt.state[key] !== change[key]);
  if (changed.length === 0) return;
  if (changed.includes("fn") && kt.state.fn >= 0 && !change.back) kt.past.push(kt.state.fn);
  delete change.back;
  Object.assign(kt.state, change);
  for (const { keys, act } of kt.listeners) {
    if (keys.some((key) => changed.includes(key))) act(changed);
  }
  clearTimeout(kt.saving);
  kt.saving = setTimeout(kt.save, 300);
};
kt.save = () => {
  const { region, fn, weight, mode, zoom, from, to } = kt.state;
  const words = new URLSearchParams();
  const name = kt.data.views[region].name;
  if (name !== null) words.set("region", name);
  if (fn >= 0) words.set("fn", kt.name(fn));
  if (weight !== "0") words.set("weight", weight);
  if (mode !== "down") words.set("mode", mode);
  if (zoom) words.set("zoom", zoom);
  if (from !== null) words.set("time", Math.round(from) + "-" + Math.round(to));
  if (root.dataset.theme) words.set("theme", root.dataset.theme);
  history.replaceState(null, "", "#" + words);
};
kt.restore = () => {
  const words = new URLSearchParams(location.hash.slice(1));
  const region = kt.data.views.findIndex((view) => view.name === words.get("region"));
  const fn = kt.data.names.indexOf(words.get("fn"));
  const [from, to] = (words.get("time") || "").split("-").map(Number);
  if (words.get("theme") === "dark" || words.get("theme") === "light") root.dataset.theme = words.get("theme");
  const weights = kt.weights().map((weight) => weight.id);
  Object.assign(kt.state, {
    region: region < 0 ? 0 : region,
    fn: fn >= 0 ? fn : 0,
    weight: weights.includes(words.get("weight")) ? words.get("weight") : "0",
    mode: ["from", "to"].includes(words.get("mode")) ? words.get("mode") : "down",
    zoom: words.get("zoom") || "",
    from: to > from ? from : null,
    to: to > from ? to : null,
  });
};
// What the width of a frame can stand for: a column of the tree, and how to write its sums.
kt.weights = () => {
  const all = [{ id: "0", column: 0, title: "net time", unit: kt.ns }];
  if (kt.data.emulator) all.push({ id: "i", column: 0, title: "instructions", unit: (n) => kt.count(n) + " instr." });
  if (kt.data.weights) {
    all.push({ id: "1", column: 1, title: "taken branches", unit: (n) => kt.count(n) + " branches" });
    all.push({ id: "2", column: 2, title: "L1I misses (model)", unit: (n) => kt.count(n) + " L1I misses" });
    all.push({ id: "3", column: 3, title: "iTLB misses (model)", unit: (n) => kt.count(n) + " iTLB misses" });
  }
  return all;
};
kt.weight = () => kt.weights().find((weight) => weight.id === kt.state.weight);
