// Lanes of several CPUs: the running thread, and times in which the CPU is halted or waits for its turn. Kinds are those of
// cpus.rs.
kt.cpuLanes = (m, view) => {
  if (m.cpus.length === 0) return null;
  const { LEFT, BAND, GAP, COLORS } = view;
  const HALTED = 4, WAITS = 5;
  const NAMES = ["kernel", "user mode", "interrupt", "idle task", "halted", "waits for its turn"];
  const FILLS = [COLORS.kernel, COLORS.user, COLORS.interrupt, COLORS.idle, COLORS.halted];
  const top = (cpu) => view.TOP + cpu * (BAND + GAP);
  let hatch = null;
  const fill = (g, kind, x, y, w, h) => {
    if (w <= 0 || h <= 0) return;
    g.fillStyle = kind === WAITS ? hatch : FILLS[kind];
    g.fillRect(x, y, w, h);
  };
  const pattern = (g) => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const t = tile.getContext("2d");
    t.strokeStyle = kt.css("--same");
    t.beginPath();
    for (const at of [-6, 0, 6]) { t.moveTo(at - 1, 7); t.lineTo(at + 7, -1); }
    t.stroke();
    return g.createPattern(tile, "repeat");
  };
  const times = (cpu) => m.cpus[cpu].sums.map((sum) => m.upTo(sum, view.u1) - m.upTo(sum, view.u0));
  const executed = (sums) => sums.slice(0, HALTED).reduce((all, sum) => all + sum, 0);
  // Heights within one pixel, from the bottom: busy time, at least a hairline; the rest is idle or waiting.
  const heights = (shares) => {
    const busy = shares.slice(0, 3).map((share) => (share * BAND > 0.01 ? Math.max(1, Math.round(share * BAND * 2) / 2) : 0));
    const rest = Math.max(0, BAND - busy[0] - busy[1] - busy[2]);
    const idle = shares[3] + shares[HALTED], waits = shares[WAITS];
    const part = idle + waits > 0 ? Math.round(idle / (idle + waits) * rest * 2) / 2 : 0;
    return [...busy, part, waits > 0 ? rest - part : 0];
  };
  const density = (g, cpu) => {
    const { sums } = m.cpus[cpu];
    const per = (view.u1 - view.u0) / view.plot();
    let begin = 0, last = null, before = sums.map((sum) => m.upTo(sum, view.u0));
    const flush = (end) => {
      let y = top(cpu) + BAND;
      if (last) last.forEach((h, at) => { y -= h; fill(g, at === 4 ? WAITS : at, LEFT + begin, y, end - begin, h); });
    };
    for (let px = 0; px < view.plot(); px++) {
      const now = sums.map((sum) => m.upTo(sum, view.u0 + (px + 1) * per));
      const next = heights(now.map((sum, kind) => (sum - before[kind]) / per));
      if (!last || next.some((h, at) => h !== last[at])) { flush(px); begin = px; last = next; }
      before = now;
    }
    flush(view.plot());
  };
  const holder = (s) => m.lanes[s.lane].name + (m.lanes[s.lane].pid ? " " + m.lanes[s.lane].pid : "");
  const label = (g, s, a, b, y) => {
    const thread = ["thread", "others"].includes(m.lanes[s.lane].kind);
    if (!thread || s.kind === HALTED) return;
    const text = kt.cut(m.lanes[s.lane].name, Math.floor((b - a - 8) / kt.letter()));
    if (!text || b - a < 5 * kt.letter()) return;
    g.font = kt.FONT;
    if (s.kind === WAITS) {
      g.fillStyle = kt.css("--panel");
      g.fillRect(a + 2, y + 3, g.measureText(text).width + 4, BAND - 6);
    }
    g.fillStyle = s.kind === WAITS ? kt.css("--quiet") : "#14171b";
    g.fillText(text, a + 4, y + BAND / 2);
  };
  const solid = (g, slices, cpu) => {
    const y = top(cpu);
    for (const s of slices) {
      if (s.u1 < view.u0 || s.u0 > view.u1) continue;
      const a = Math.max(LEFT, view.x(s.u0)), b = Math.min(view.width, view.x(s.u1));
      if (b - a < 0.5) continue;
      g.fillStyle = kt.css("--panel");
      g.fillRect(a, y, b - a, BAND);
      fill(g, s.kind, a, y, Math.max(1, b - a - (b - a > 4 ? 0.5 : 0)), BAND);
      label(g, s, a, b, y);
      const lines = [["", NAMES[s.kind]], ["from", kt.moment(s.begin)], ["for", kt.amount(s.end - s.begin)]];
      const who = s.kind === HALTED || s.kind === 3 ? "" : ": " + holder(s);
      view.zone({ x0: a, x1: b, y0: y, y1: y + BAND, head: "CPU " + cpu + who, lines });
    }
  };
  const lane = (g, cpu, bins, detailed) => {
    const { slices } = m.cpus[cpu], sums = times(cpu), y = top(cpu);
    const lines = [["executes", kt.amount(executed(sums))], ["halted", kt.amount(sums[HALTED])], ["waits for its turn", kt.amount(sums[WAITS])]];
    view.zone({ x0: LEFT, x1: view.width, y0: y, y1: y + BAND, head: "CPU " + cpu + ", all that is in view", lines });
    const alpha = g.globalAlpha;
    g.globalAlpha = alpha * (bins > 3 ? 0.5 : 1);
    density(g, cpu);
    g.globalAlpha = alpha;
    if (bins > 1) solid(g, slices, cpu);
    for (const w of detailed) if (w.cpus[cpu]) solid(g, w.cpus[cpu], cpu);
  };
  const HATCH = "repeating-linear-gradient(135deg, var(--same) 0 1px, var(--panel) 1px 4px)";
  return {
    height: m.cpus.length * (BAND + GAP) + 8,
    legend: [[NAMES[WAITS] + " (CPUs execute in turn)", HATCH]],
    // `bins` is the width of a bin in pixels.
    draw: (g, bins, detailed) => {
      hatch = pattern(g);
      m.cpus.forEach((_, cpu) => {
        g.fillStyle = kt.css("--panel");
        g.fillRect(LEFT, top(cpu), view.plot(), BAND);
        lane(g, cpu, bins, detailed);
      });
    },
    labels: (g) => m.cpus.forEach((_, cpu) => view.label(g, "CPU " + cpu, "", executed(times(cpu)), top(cpu))),
    // CPUs on which a call ran, as far as the window shows them.
    of: (w, c) => {
      const shows = (s) => (s.lane === c.lane && s.begin < c.end && s.end > c.begin) || (s.begin <= c.begin && c.begin < s.end && m.lanes[s.lane].kind === "interrupt");
      return [...new Set(w.slices.filter(shows).map((s) => s.cpu))].sort((a, b) => a - b).join(", ");
    },
  };
};
