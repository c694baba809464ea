// Source lines and machine code of the selected function, with execution counts of the whole recording.
kt.code = () => {
  const place = byId("code"), note = byId("code-note");
  let mine = 0;
  const count = (n, most) => {
    const cell = kt.make("td", { class: "part" }, n > 0 ? kt.count(n) : "");
    cell.style.setProperty("--part", (100 * n / most).toFixed(1) + "%");
    cell.title = n > 0 ? kt.grouped(n) : "never ran";
    return cell;
  };
  const table = (caption, heads, rows) => kt.make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": caption },
    kt.make("table", { class: "code" }, kt.make("caption", {}, caption), kt.make("thead", {}, kt.make("tr", {}, ...heads.map((head) => kt.make("th", { scope: "col" }, head)))), kt.make("tbody", {}, ...rows)));
  // The button of a line marks its instructions; the button of an instruction marks its line.
  const mark = (line) => {
    const was = place.dataset.line;
    place.dataset.line = was === String(line) ? "" : String(line);
    let first = true;
    for (const row of place.querySelectorAll("tr[data-line]")) {
      const marked = row.dataset.line === place.dataset.line;
      row.classList.toggle("marked", marked);
      const button = row.querySelector("button");
      if (button) button.setAttribute("aria-pressed", String(marked));
      if (marked && first && row.classList.contains("machine")) {
        const box = row.closest(".scroll");
        box.scrollTop = row.offsetTop - box.clientHeight / 3;
        first = false;
      }
    }
  };
  const show = (code) => {
    place.dataset.line = "";
    if (typeof code === "string") {
      note.textContent = code;
      place.replaceChildren();
      return;
    }
    const fn = kt.state.fn;
    let self = 0;
    for (const group of kt.data.groups) { const at = group.functions.f.indexOf(fn); if (at >= 0) self += group.functions.net[at]; }
    const apart = self === code.executed ? "" : ` Its self count is ${kt.grouped(self)}: there an instruction that returns counts for the caller.`;
    const whole = kt.data.other ? " All of it is of the first profile." : "";
    note.textContent = `${kt.grouped(code.executed)} instructions ran at its addresses in the whole recording.${apart}${whole} ${code.note}`.trim();
    const mostLine = Math.max(1, ...code.lines.map((line) => line[2] || 0));
    let last = null;
    const lines = code.lines.flatMap(([at, number, n, text], line) => {
      const file = at >= 0 ? code.files[at] : "";
      const head = file !== last ? [kt.make("tr", {}, kt.make("th", { colspan: "3", scope: "colgroup" }, file || "elsewhere"))] : [];
      last = file;
      const label = n === null ? kt.make("span", {}, String(number)) : kt.make("button", { type: "button", "aria-pressed": "false", title: "mark its instructions" }, number > 0 ? String(number) : "?");
      const cells = [kt.make("td", { class: "line" }, label), count(n || 0, mostLine), kt.make("td", { class: "text" }, text || "")];
      const row = kt.make("tr", { class: n === null ? "source none" : n > 0 ? "source" : "source never" }, ...cells);
      if (n !== null) row.dataset.line = String(line);
      return [...head, row];
    });
    const mostCode = Math.max(1, ...code.code.map((row) => row[1]));
    const machine = code.code.map(([address, n, taken, text, line]) => {
      const at = line >= 0 ? code.lines[line] : null;
      const label = at ? kt.make("button", { type: "button", "aria-pressed": "false", title: (at[0] >= 0 ? code.files[at[0]] + ":" + at[1] : "no line") + "; mark its line" }, address) : address;
      const branch = taken > 0 ? kt.make("span", { class: "taken" }, "  taken " + kt.count(taken) + (n > 0 ? ", " + kt.percent(taken, n) : "")) : "";
      const row = kt.make("tr", { class: n > 0 ? "machine" : "machine never" }, kt.make("td", { class: "line" }, label), count(n, mostCode), kt.make("td", { class: "text" }, text, branch));
      if (line >= 0) row.dataset.line = String(line);
      return row;
    });
    place.replaceChildren(
      ...(lines.length ? [table("Source lines", ["line", "ran", "source"], lines)] : []),
      table("Machine code", ["address", "ran", "instruction"], machine));
  };
  place.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) mark(button.closest("tr").dataset.line);
  });
  const draw = async () => {
    if (kt.state.tab !== "source") return;
    const at = ++mine;
    kt.working++;
    try {
      const code = await kt.source.code(kt.state.fn);
      if (at === mine) { kt.codeShown = code; show(code); }
    } catch (error) {
      if (at === mine) show("The code cannot be shown: " + error.message);
    } finally { kt.working--; }
  };
  kt.on(["fn", "tab"], draw);
  draw();
};
