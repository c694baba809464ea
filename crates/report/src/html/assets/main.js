// Assembles the views. `data-ready` on the document says that all of them are drawn.
kt.isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const retheme = () => (kt.onTheme || []).forEach((act) => act());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", retheme);
byId("theme").addEventListener("click", () => {
  root.dataset.theme = kt.isDark() ? "light" : "dark";
  kt.save(false);
  retheme();
});
// Creates a list of tabs: one is selected, arrow keys move to the next.
const tabs = (list, key) => {
  const buttons = [...byId(list).querySelectorAll("[role=tab]")];
  const follow = () => {
    for (const button of buttons) {
      const chosen = button.dataset.value === kt.state[key];
      button.setAttribute("aria-selected", String(chosen));
      button.tabIndex = chosen ? 0 : -1;
      byId(button.getAttribute("aria-controls")).hidden = !chosen;
    }
  };
  for (const button of buttons) {
    button.addEventListener("click", () => kt.set({ [key]: button.dataset.value }));
    button.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      const there = buttons.filter((b) => !b.hidden), next = there[(there.indexOf(button) + by + there.length) % there.length];
      kt.set({ [key]: next.dataset.value });
      next.focus();
    });
  }
  kt.on([key], follow);
  follow();
};
const controls = () => {
  const choice = (id, key, rows) => {
    const select = byId(id);
    if (rows) select.append(...rows.map(([value, text]) => kt.make("option", { value }, text)));
    const follow = () => { select.value = String(kt.state[key]); };
    kt.on([key], follow);
    follow();
    return select;
  };
  const region = choice("region", "region", kt.data.views.map((view, at) => [String(at), view.name === null ? "all regions" : view.name]));
  region.closest("label").hidden = kt.data.views.length < 2;
  region.addEventListener("change", () => kt.set({ region: Number(region.value) }));
  const weight = choice("weight", "weight", kt.weights().map((w) => [w.id, w.title]));
  weight.closest("label").hidden = kt.weights().length < 2;
  weight.addEventListener("change", () => kt.set({ weight: weight.value }));
  const mode = choice("mode", "mode");
  mode.addEventListener("change", () => kt.set({ mode: mode.value, zoom: "" }));
  const profile = choice("profile", "profile", kt.data.other ? [["a", "first: " + kt.data.label], ["b", "second: " + kt.data.other.label], ["both", "both, side by side"], ["diff", "difference"]] : [["a", ""]]);
  profile.closest("label").hidden = !kt.data.other;
  profile.addEventListener("change", () => kt.set({ profile: profile.value, zoom: "", sel: null }));
  const note = byId("pair-note");
  const pair = () => {
    const { profile: which } = kt.state;
    note.hidden = which !== "diff" && which !== "both";
    byId("first-label").textContent = which === "both" ? "first: " + kt.data.label : "";
    byId("second-label").textContent = which === "both" ? "second: " + kt.data.other.label : "";
    byId("figures").className = which === "both" ? "figures two" : "figures";
    byId("tree-legend").hidden = which === "diff";
    if (note.hidden) return;
    const [a, b] = kt.sides.map((side) => side.about.busy);
    const operations = kt.data.operations === kt.data.other.operations ? "" : ` The first did ${kt.grouped(kt.data.operations)} operations, the second ${kt.grouped(kt.data.other.operations)}: nothing is scaled.`;
    note.replaceChildren(`Busy ${kt.unit()}: ${kt.amount(a)} → ${kt.amount(b)}, `, kt.make("b", { class: kt.verdict(b - a) }, `${kt.change(a, b)} ${kt.verdict(b - a)}`), `.${which === "diff" ? " Width: both together. Blue: less in the second (better); orange: more (worse). Each function is as its kernel was compiled; kerntune report diff shows what only one has inlined as its caller." : ""}${operations}`);
  };
  kt.on(["view"], pair);
  pair();
  tabs("shows", "show");
  tabs("one-tabs", "tab");
};
const facts = () => {
  const { busy, idle, user } = kt.view.about;
  byId("whole").textContent = `${kt.withUnit(busy)} busy (${kt.amount(user)} in user code)` + (idle > 0 ? `, ${kt.amount(idle)} idle` : "");
};
const start = async () => {
  kt.data = await kt.load();
  if (kt.data.other) kt.data.other.groups = kt.adopt(kt.data, kt.data.other);
  Object.assign(kt.state, kt.restore());
  byId("views").hidden = false;
  await kt.renew();
  if (!kt.view) { kt.state.sel = null; await kt.renew(); }
  kt.on(["region", "sel", "ops", "profile"], kt.renew);
  kt.startTrees();
  controls();
  kt.chips();
  kt.on(["view"], facts);
  facts();
  if (kt.data.groups.some((group) => kt.raw(group.tree).n > 0)) {
    kt.icicle(byId("icicle"), 0);
    kt.icicle(byId("icicle-second"), 1);
    kt.crumbs();
    kt.callTree();
    kt.swatches(byId("tree-legend"), kt.legend());
  } else byId("tree").hidden = true;
  kt.search();
  byId("time").hidden = !kt.data.time && !kt.data.traced;
  const withTime = () => { kt.timeline(); byId("time-body").hidden = false; byId("time-wait").hidden = true; root.dataset.timeMs = performance.now().toFixed(0); };
  if (kt.data.time) withTime();
  kt.table();
  kt.neighbors();
  kt.histogram();
  kt.code();
  kt.ready = true;
  root.dataset.readyMs = performance.now().toFixed(0);
  root.dataset.ready = "true";
  if (!kt.data.time && kt.data.traced) {
    kt.data.time = await kt.source.overview((text) => { byId("time-wait").textContent = text; });
    withTime();
    if (kt.state.sel) kt.renew();
  }
  root.dataset.whole = "true";
};
start().catch((error) => {
  root.dataset.errors = String(Number(root.dataset.errors) + 1);
  root.dataset.error = String(error && error.stack || error);
  byId("trouble").textContent = "The pictures cannot be drawn: " + (error && error.message || error);
  byId("trouble").hidden = false;
});
// Hook for measurements from outside.
window.kerntune = kt;
