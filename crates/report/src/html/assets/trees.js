// Trees on display: one, or one for each of two profiles side by side. Pictures and the table share them.
kt.trees = [];
const treesNow = () => {
  const { profile, mode, fn } = kt.state, sides = kt.sides;
  if (profile === "both") return sides.map((side) => kt.treeOf(side.raws, mode, fn));
  if (profile !== "diff") return [kt.treeOf(kt.view.raws, mode, fn)];
  const raws = sides.flatMap((side) => side.raws);
  return [kt.treeOf(raws, mode, fn, sides.flatMap((side, at) => side.raws.map(() => at)))];
};
kt.startTrees = () => {
  kt.on(["view", "mode"], () => { kt.trees = treesNow(); kt.fire(["trees"]); });
  kt.on(["fn"], () => {
    if (kt.state.mode !== "from" && kt.state.mode !== "to") return;
    kt.trees = treesNow();
    kt.fire(["trees"]);
  });
  kt.trees = treesNow();
};
kt.isDiff = () => kt.state.profile === "diff";
kt.title = (tree, node) => {
  const f = tree.f[node], how = kt.data.hows[tree.how[node]];
  if (f === kt.SMALLER) return kt.grouped(tree.calls[node]) + " smaller";
  // The tooltip has the kind of entry; only entries without a caller are marked here.
  return (how === "interrupt" || how === "exception" ? how + " " : "") + kt.name(f);
};
// Describes a node in lines of name and value.
kt.facts = (tree, node) => {
  const weight = kt.weight(), c = weight.column, whole = tree.totals[c], all = tree.all[c][node];
  const f = tree.f[node], lines = [], calls = tree.calls[node];
  if (kt.isDiff()) {
    const b = tree.b[c][node], a = all - b;
    lines.push(["first", weight.unit(a)], ["second", weight.unit(b)], ["difference", kt.signed(b - a, weight.unit) + ", " + kt.change(a, b)]);
    if (f !== kt.SMALLER && calls > 0) lines.push(["calls", kt.grouped(calls - tree.callsB[node]) + " and " + kt.grouped(tree.callsB[node])]);
  } else if (f === kt.SMALLER) {
    lines.push(["paths", kt.grouped(calls) + ", each too small to be told apart"], ["together", weight.unit(all) + ", " + kt.percent(all, whole)]);
    return lines;
  } else if (tree.kind === "up") {
    lines.push([tree.parent[node] < 0 ? "itself" : "on behalf of it", weight.unit(all) + ", " + kt.percent(all, whole)]);
  } else {
    if (calls > 0) lines.push(["calls", kt.grouped(calls)]);
    lines.push(["with callees", weight.unit(all) + ", " + kt.percent(all, whole)]);
    lines.push(["itself", weight.unit(tree.own[c][node]) + ", " + kt.percent(tree.own[c][node], whole)]);
    if (c !== 0) lines.push([kt.unit(), kt.amount(tree.all[0][node]) + ", itself " + kt.amount(tree.own[0][node])]);
    if (tree.parent[node] >= 0) lines.push(["of its caller", kt.percent(all, tree.all[c][tree.parent[node]])]);
    if (calls > 0) lines.push(["per call", weight.unit(all / calls)]);
  }
  const how = kt.data.hows[tree.how[node]];
  if (f >= 0 && tree.kind !== "up") lines.push(["came to run by", how === "jump" ? "jump (tail call)" : how]);
  const source = kt.module(f) || kt.file(f);
  if (source) lines.push(["source", source]);
  return lines;
};
kt.inWords = (tree, node) => kt.title(tree, node) + ": " + kt.facts(tree, node).map((line) => line.join(" ")).join("; ");
// Keys that operate on a node's function, in the picture and in the table.
kt.keyOn = (key, f) => {
  if (f < 0 && f > kt.THREAD) return false;
  const what = { f: "focus", m: "merge", x: "drop" }[key];
  if (what) kt.addOp(what, f);
  else if (key === "c" && f >= 0) kt.set({ fn: f });
  else return false;
  return true;
};
