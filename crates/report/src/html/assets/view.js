// Computes the view from the state: profile, region, selection, and operations on the paths. Views redraw when "view" is
// signaled.
kt.said = (text) => { byId("busy").textContent = text; };
const about = (index, times) => {
  const view = kt.data.views[index];
  if (!times) return view;
  const sum = (i) => view.groups.reduce((all, g) => all + (times[g] ? times[g][i] : 0), 0);
  return { ...view, busy: sum(0), idle: sum(1), user: sum(2), elapsed: sum(0) + sum(1) };
};
// Region of the second profile: by name, else the whole.
const indexOfOther = () => {
  const name = kt.data.views[kt.state.region].name, views = kt.data.other.views;
  const at = views.findIndex((view) => view.name === name);
  return at < 0 ? -1 : at;
};
const sideOf = (groups, tables, facts) => {
  const ops = kt.ops();
  const raws = groups.map((group) => kt.apply(kt.raw(group.tree), ops)).filter((raw) => raw.n > 0);
  const whole = { ...tables, about: facts, raws };
  if (ops.length > 0) Object.assign(whole, kt.tablesFrom(raws));
  return whole;
};
const wholeA = () => {
  const groups = kt.data.views[kt.state.region].groups.map((g) => kt.data.groups[g]);
  return sideOf(groups, kt.tablesOf(groups), about(kt.state.region));
};
const wholeB = () => {
  const index = indexOfOther();
  if (index < 0) return sideOf([], kt.tablesOf([]), { ...kt.data.views[kt.state.region], busy: 0, idle: 0, user: 0, elapsed: 0 });
  const view = kt.data.other.views[index], groups = view.groups.map((g) => kt.data.other.groups[g]);
  return sideOf(groups, kt.tablesOf(groups), view);
};
let latest = 0;
const shown = (sides) => {
  const { profile } = kt.state;
  kt.sides = sides;
  kt.view = sides[profile === "b" ? 1 : 0];
  // Shares of a difference refer to the first profile.
  kt.fire(["view"]);
  kt.shownAt = performance.now();
};
kt.shownAt = 0;
let answered = { sel: null, found: null };
kt.renew = async () => {
  const mine = ++latest, sel = kt.selection(), { profile } = kt.state;
  const began = performance.now();
  if (profile !== "a" || !sel) {
    kt.said("");
    shown(profile === "a" ? [wholeA()] : [wholeA(), wholeB()]);
    root.dataset.viewMs = (performance.now() - began).toFixed(1);
    return;
  }
  let found = answered.sel === kt.state.sel ? answered.found : null;
  if (!found) {
    const text = "adding up the selection …";
    const late = setTimeout(() => { if (mine === latest) kt.said(text); }, 150);
    try {
      found = await kt.source.select(sel[0], sel[1], () => mine !== latest, (part) => { if (mine === latest) kt.said(text + " " + kt.percent(part, 1)); });
    } catch (error) {
      // A view of another stretch must not be mistaken for the selection.
      if (mine === latest) { kt.said("The selection cannot be added up: " + error.message); kt.set({ sel: null }); kt.said("The selection cannot be added up: " + error.message); }
      return;
    } finally { clearTimeout(late); }
    if (mine !== latest || !found) return;
    answered = { sel: kt.state.sel, found };
  }
  kt.said("");
  const groups = kt.data.views[kt.state.region].groups.map((g) => found.groups[g]);
  shown([sideOf(groups, kt.tablesOf(groups), about(kt.state.region, found.times))]);
  root.dataset.viewMs = (performance.now() - began).toFixed(1);
};
// Resolves when no work is pending.
kt.settled = async () => {
  for (let quiet = 0; quiet < 2;) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    quiet = kt.working > 0 ? 0 : quiet + 1;
  }
};
kt.working = 0;
// Delays content further down the page until after the first frame.
kt.afterwards = (act) => {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    kt.working++;
    requestAnimationFrame(() => setTimeout(() => { due = false; try { act(); } finally { kt.working--; } }, 0));
  };
};
const tracked = (act) => async () => { kt.working++; try { await act(); } finally { kt.working--; } };
kt.renew = tracked(kt.renew);
