// Puts the views together. `data-ready` on the document says that all of them are drawn.
kt.isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const retheme = () => (kt.onTheme || []).forEach((act) => act());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", retheme);
byId("theme").addEventListener("click", () => {
  root.dataset.theme = kt.isDark() ? "light" : "dark";
  kt.save();
  retheme();
});
const controls = () => {
  const region = byId("region"), search = byId("search"), weight = byId("weight"), mode = byId("mode");
  region.append(...kt.data.views.map((view, at) => kt.make("option", { value: String(at) }, view.name === null ? "all regions" : view.name)));
  weight.append(...kt.weights().map((w) => kt.make("option", { value: w.id }, w.title)));
  byId("names").append(...kt.data.names.map((name) => kt.make("option", { value: name })));
  const follow = () => { [region.value, weight.value, mode.value] = [String(kt.state.region), kt.state.weight, kt.state.mode]; };
  kt.on(["region", "weight", "mode"], follow);
  follow();
  region.addEventListener("change", () => {
    kt.view = kt.viewOf(Number(region.value));
    kt.set({ region: Number(region.value) });
  });
  weight.addEventListener("change", () => kt.set({ weight: weight.value }));
  mode.addEventListener("change", () => kt.set({ mode: mode.value, zoom: "" }));
  search.addEventListener("input", kt.soon(() => {
    const wanted = search.value.trim().toLowerCase();
    kt.highlight(wanted.length < 2 ? null : (f) => kt.name(f).toLowerCase().includes(wanted));
    if (kt.data.names.includes(search.value.trim())) kt.set({ fn: kt.data.names.indexOf(search.value.trim()) });
  }));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") { search.value = ""; kt.highlight(null); }
    if (event.key !== "Enter") return;
    const wanted = search.value.trim().toLowerCase();
    const names = kt.data.names;
    const hit = names.findIndex((name) => name.toLowerCase() === wanted);
    const found = hit >= 0 ? hit : names.findIndex((name) => name.toLowerCase().includes(wanted));
    if (wanted && found >= 0) kt.set({ fn: found });
  });
  byId("back").addEventListener("click", () => { if (kt.past.length) kt.set({ fn: kt.past.pop(), back: true }); });
  window.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/INPUT|SELECT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); search.focus(); }
  });
};
const start = async () => {
  kt.data = await kt.load();
  kt.restore();
  kt.view = kt.viewOf(kt.state.region);
  for (const id of ["controls", "tree", "functions"]) byId(id).hidden = false;
  controls();
  if (kt.view.tree.n > 0) {
    kt.icicle();
    kt.swatches(byId("tree-legend"), kt.legend());
  } else {
    byId("tree").hidden = true;
    kt.highlight = () => {};
  }
  kt.timeline();
  kt.table();
  kt.neighbours();
  kt.histogram();
  root.dataset.readyMs = performance.now().toFixed(0);
  root.dataset.ready = "true";
};
start().catch((error) => {
  root.dataset.errors = String(Number(root.dataset.errors) + 1);
  root.dataset.error = String(error && error.stack || error);
  byId("trouble").textContent = "The pictures cannot be drawn: " + (error && error.message || error);
  byId("trouble").hidden = false;
});
// For measurements from outside.
window.kerntune = kt;
