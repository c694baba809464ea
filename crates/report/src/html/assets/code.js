// Source lines and machine code of the chosen function, with how often each ran: kt.data.code, where branches were recorded.
kt.code = () => {
  const place = byId("code"), note = byId("code-note");
  if (!kt.data.code && !kt.data.coded) { byId("tab-source").hidden = true; return; }
  let mine = 0;
  const row = (cells, most, count, cls) => {
    const share = kt.make("td", { class: "part" }, count > 0 ? kt.count(count) : "");
    share.style.setProperty("--part", (100 * count / most).toFixed(1) + "%");
    return kt.make("tr", { class: count > 0 ? cls : cls + " never" }, ...cells, share);
  };
  const show = (code) => {
    if (!code) {
      note.textContent = "No code of this function is on the page.";
      place.replaceChildren();
      return;
    }
    const file = (at) => (at >= 0 ? code.files[at] : "");
    note.textContent = `${kt.grouped(code.executed)} instructions ran in it, in all regions of the recording. ${code.note || ""}`;
    // Lines: file, number, instructions executed for it; text where the source is there.
    const mostLine = Math.max(1, ...code.lines.map((line) => line[2]));
    let last = "";
    const lines = code.lines.flatMap(([at, number, count, text]) => {
      const head = file(at) !== last ? [kt.make("tr", {}, kt.make("th", { colspan: "3", scope: "colgroup" }, last = file(at)))] : [];
      return [...head, row([kt.make("td", { class: "line" }, String(number)), kt.make("td", { class: "text" }, text || "")], mostLine, count, "source")];
    });
    const mostCode = Math.max(1, ...code.code.map((line) => line[1]));
    const machine = code.code.map(([address, count, text, line]) => row([kt.make("td", { class: "line", title: line }, address), kt.make("td", { class: "text" }, text)], mostCode, count, "machine"));
    const table = (caption, heads, rows) => kt.make("div", { class: "scroll tall", tabindex: "0", role: "region", "aria-label": caption },
      kt.make("table", { class: "code" }, kt.make("caption", {}, caption), kt.make("thead", {}, kt.make("tr", {}, ...heads.map((head) => kt.make("th", { scope: "col" }, head)))), kt.make("tbody", {}, ...rows)));
    place.replaceChildren(
      ...(lines.length ? [table("Source lines", ["line", "source", "instructions"], lines)] : []),
      table("Machine code", ["address", "instruction", "ran"], machine));
  };
  const draw = async () => {
    if (kt.state.tab !== "source") return;
    const at = ++mine, fn = kt.state.fn;
    const code = kt.data.code ? kt.data.code[fn] : await kt.source.code(kt.data.symbol[fn]);
    if (at === mine) show(code);
  };
  kt.on(["fn", "tab"], draw);
  draw();
};
