// Callers and callees of the selected function, by total time or by calls.
kt.neighbors = () => {
  const svg = byId("neighbors"), select = byId("arc-weight"), MOST = 12, LINE = 34;
  // The heaviest arcs to or from one side; the others are merged.
  const side = (arcs, end, weight) => {
    const sorted = [...arcs].sort((a, b) => b[weight] - a[weight] || b.calls - a.calls);
    const rows = sorted.slice(0, sorted.length > MOST ? MOST - 1 : MOST).map((arc) => ({ ...arc, f: arc[end] }));
    const rest = sorted.slice(rows.length);
    if (rest.length > 0) {
      rows.push({ f: kt.OTHERS, label: rest.length + " others", how: "call", calls: rest.reduce((s, a) => s + a.calls, 0), ended: rest.reduce((s, a) => s + a.ended, 0), elapsed: rest.reduce((s, a) => s + a.elapsed, 0) });
    }
    return rows;
  };
  if (!kt.hasCalls()) select.closest("label").hidden = true;
  const draw = () => {
    if (kt.state.tab !== "calls") return;
    const fn = kt.state.fn, weight = select.value;
    const row = kt.view.functions.get(fn);
    const left = side(kt.view.callers.get(fn) || [], "from", weight), right = side(kt.view.callees.get(fn) || [], "to", weight);
    const lines = Math.max(left.length, right.length, 2);
    const height = lines * LINE + 24;
    const width = kt.sheet(svg, height);
    const middle = Math.min(170, width * 0.22), room = (width - middle) / 2 - 44;
    const [x0, x1] = [room + 44, room + 44 + middle];
    const sum = (rows) => rows.reduce((s, r) => s + r[weight], 0);
    const own = weight === "elapsed" && row ? row.net : 0;
    const scale = (height - 30) / Math.max(sum(left), sum(right) + own, 1) * 0.8;
    const words = (r) => (weight === "elapsed" ? kt.amount(r.elapsed) : kt.grouped(r.calls) + " calls");
    const share = (r, rows) => kt.percent(r[weight], Math.max(weight === "elapsed" && row ? row.elapsed : sum(rows), 1));

    const ribbons = (rows, isLeft) => {
      const total = sum(rows) * scale;
      let at = height / 2 - total / 2;
      const top = height / 2 - rows.length * LINE / 2;
      rows.forEach((r, i) => {
        const thick = Math.max(1, r[weight] * scale);
        const y = top + i * LINE + LINE / 2, inner = at + thick / 2;
        at += r[weight] * scale;
        const [a, b] = isLeft ? [room + 4, x0] : [x1, width - room - 4];
        const [ya, yb] = isLeft ? [y, inner] : [inner, y];
        const c = (a + b) / 2;
        // Full width at the function, the thickness of a text line at the name.
        const ends = Math.min(thick, LINE - 6);
        const [ta, tb] = isLeft ? [ends, thick] : [thick, ends];
        svg.append(kt.svg("path", {
          d: `M${a},${ya - ta / 2} C${c},${ya - ta / 2} ${c},${yb - tb / 2} ${b},${yb - tb / 2} L${b},${yb + tb / 2} C${c},${yb + tb / 2} ${c},${ya + ta / 2} ${a},${ya + ta / 2} Z`,
          fill: kt.color(r.f === kt.OTHERS ? kt.SMALLER : r.f, r.how), opacity: 0.55,
        }));
        box(r, isLeft ? 0 : width - room, y, isLeft, rows);
      });
      if (rows.length === 0) {
        const text = isLeft ? "nothing is known to call it" : "calls nothing";
        svg.append(kt.svg("text", { x: isLeft ? 0 : width, y: height / 2, class: "quiet", "text-anchor": isLeft ? "start" : "end" }, text));
      }
    };
    const box = (r, x, y, isLeft, rows) => {
      const group = kt.svg("g", r.f >= 0 ? { class: "walk", tabindex: 0, role: "button" } : {});
      const name = r.label || (r.f === kt.NONE ? (r.how === "call" ? "(beginning of the trace)" : "(nothing: " + r.how + ")") : kt.name(r.f));
      const letters = Math.floor((room - 12) / kt.letter());
      group.append(kt.svg("rect", { x, y: y - LINE / 2 + 1.5, width: room, height: LINE - 3, rx: 3, class: "plate" }));
      group.append(kt.svg("rect", { x: isLeft ? x + room - 4 : x, y: y - LINE / 2 + 1.5, width: 4, height: LINE - 3, fill: kt.color(r.f === kt.OTHERS || r.f === kt.NONE ? kt.SMALLER : r.f, r.how) }));
      group.append(kt.svg("text", { x: x + 7, y: y - 3, class: "name" }, kt.cut(name, letters)));
      const how = r.how === "call" ? "" : (r.how === "jump" ? "tail call" : r.how) + ", ";
      group.append(kt.svg("text", { x: x + 7, y: y + 11, class: "small" }, kt.cut(how + words(r) + ", " + share(r, rows), Math.floor((room - 10) / 5.6))));
      group.append(kt.svg("title", {}, kt.hasCalls() ? `${name}\n${kt.grouped(r.calls)} calls (${r.how}), ${kt.amount(r.elapsed)} elapsed, ${kt.amount(r.ended ? r.elapsed / r.ended : 0)} each\n${kt.file(r.f)}` : `${name}\n${kt.amount(r.elapsed)} ± ${kt.amount(kt.error(r.elapsed))} on the stack (${r.how})\n${kt.file(r.f)}`));
      if (r.f >= 0) {
        group.setAttribute("aria-label", `${isLeft ? "caller" : "callee"} ${name}, ${words(r)}`);
        group.addEventListener("click", () => kt.set({ fn: r.f }));
        group.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); kt.set({ fn: r.f }); } });
      }
      svg.append(group);
    };
    ribbons(left, true);
    ribbons(right, false);
    // The function itself; the part without a callee is its self time.
    const tall = Math.max(48, Math.max(sum(left), sum(right) + own) * scale + 6);
    const y = height / 2 - tall / 2;
    svg.append(kt.svg("rect", { x: x0, y, width: middle, height: tall, rx: 4, fill: kt.color(fn, "") }));
    const letters = Math.floor((middle - 8) / kt.letter());
    const text = (dy, content, cls) => svg.append(kt.svg("text", { x: (x0 + x1) / 2, y: height / 2 + dy, class: cls + " on" }, content));
    if (row) {
      text(-10, kt.cut(kt.name(fn), letters), "name");
      text(5, kt.amount(row.elapsed), "small");
      text(19, "self " + kt.amount(row.net), "small");
    } else text(0, kt.cut(kt.name(fn), letters), "name");
  };
  const facts = () => {
    const fn = kt.state.fn, row = kt.view.functions.get(fn);
    byId("one-name").textContent = fn < 0 ? "No function chosen" : kt.name(fn);
    const place = byId("one-facts");
    if (!row) { place.textContent = "Not called in what is shown."; return; }
    const busy = kt.view.about.busy;
    const calls = kt.hasCalls() ? `${kt.grouped(row.calls)} calls${row.derived || row.ended === row.calls ? "" : " (" + kt.grouped(row.ended) + " ended)"} · ` : "";
    const error = kt.isSampled() ? " ± " + kt.amount(kt.error(row.net)) : "";
    place.replaceChildren(`${kt.module(fn) || kt.file(fn) || "source path not known"} · ${calls}${kt.unit()} in all ${kt.amount(row.elapsed)} (${kt.percent(row.elapsed, busy)} of busy) · self ${kt.amount(row.net)}${error} (${kt.percent(row.net, busy)})`);
    if (row.slowest < 0) return;
    place.append(` · slowest call ${kt.amount(row.slowest)} at ${kt.moment(row.at)} `);
    if (kt.showTime && kt.state.profile === "a") {
      const button = kt.make("button", { type: "button" }, "show in timeline");
      button.addEventListener("click", () => {
        const known = kt.timeModel.places.find((w) => w.function === fn && w.begin === row.at);
        kt.showTime(row.at, known ? known.end : row.at + row.slowest);
        byId("time").scrollIntoView({ block: "start" });
      });
      place.append(button);
    }
  };
  const both = () => { facts(); draw(); };
  select.addEventListener("change", draw);
  kt.on(["view"], kt.afterwards(both));
  kt.on(["fn", "tab"], both);
  kt.redraw(svg, kt.soon(draw));
  both();
};
