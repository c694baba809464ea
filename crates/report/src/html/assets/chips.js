// Restrictions of the view, each with a button that removes it: the selection, and operations on functions.
kt.chips = () => {
  const place = byId("chips");
  const chip = (text, label, undo) => {
    const button = kt.make("button", { type: "button", "aria-label": label, title: label }, "×");
    button.addEventListener("click", undo);
    return kt.make("span", { class: "chip" }, text, button);
  };
  const draw = () => {
    const sel = kt.selection(), out = [];
    if (sel && kt.state.profile === "a") {
      out.push(chip("selected: " + kt.amount(sel[1] - sel[0]) + " from " + kt.moment(sel[0]), "Clear the selection (Escape in the timeline)", () => kt.set({ sel: null })));
    }
    const ops = kt.ops(), words = { drop: "without ", merge: "merged: ", focus: "only below " };
    ops.forEach(([what, f], at) => out.push(chip(words[what] + kt.name(f), "Undo: " + words[what] + kt.name(f), () => kt.setOps(ops.filter((_, i) => i !== at)))));
    place.replaceChildren(...out);
    place.hidden = out.length === 0;
  };
  kt.on(["sel", "ops", "profile"], draw);
  draw();
  for (const what of ["focus", "merge", "drop"]) byId(what).addEventListener("click", () => { if (kt.state.fn >= 0) kt.addOp(what, kt.state.fn); });
  const able = () => { for (const what of ["focus", "merge", "drop"]) byId(what).disabled = kt.state.fn < 0; };
  kt.on(["fn"], able);
  able();
};
