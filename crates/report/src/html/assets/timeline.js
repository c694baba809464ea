// Timeline: lanes for threads, interrupts and idle time. Single calls are drawn below their lane where they are known and wide
// enough. With several CPUs, their lanes are above (cpus.js).
kt.timeline = () => {
  const canvas = byId("timeline"), status = byId("time-status"), m = kt.moments();
  if (!m) return;
  const small = innerWidth < 700, LEFT = small ? 108 : 142, AXIS = 22, REGION = 17, BAND = 20, CALL = 16, GAP = 7, OFF = -9999;
  const COLORS = { kernel: "#77aadd", user: kt.SPECIAL.user, interrupt: kt.SPECIAL.interrupt, idle: "#aeb4bb", halted: "#aeb4bb" };
  let width = 0, u0 = 0, u1 = m.length, places = [], drawn = [], zones = [], detailed = [], left = 0, loaded = null, loading = null, drag = null;

  const plot = () => Math.max(50, width - LEFT);
  const x = (u) => LEFT + (u - u0) / (u1 - u0) * plot();
  const color = (lane, user) => {
    const kind = m.lanes[lane].kind;
    return kind === "interrupt" ? COLORS.interrupt : kind === "idle" || kind === "task" ? COLORS.idle : user ? COLORS.user : COLORS.kernel;
  };
  const isTask = (lane) => lane.kind === "thread" || lane.kind === "task";
  const busy = (lane) => m.sums[lane].reduce((all, sum) => all + m.upTo(sum, u1) - m.upTo(sum, u0), 0);
  // Lane's name, and its share of the visible time.
  const label = (g, name, pid, ns, y) => {
    g.fillStyle = kt.css("--ink");
    g.font = "12px system-ui, sans-serif";
    g.fillText(name, 0, y + BAND / 2);
    g.fillStyle = kt.css("--quiet");
    g.font = "11px system-ui, sans-serif";
    if (pid) g.fillText(pid, g.measureText(name).width * 12 / 11 + 4, y + BAND / 2);
    const text = kt.percent(ns / (u1 - u0), 1);
    g.fillText(text, LEFT - 8 - g.measureText(text).width, y + BAND / 2);
  };
  const view = {
    LEFT, BAND, GAP, COLORS, x, plot, label, TOP: AXIS + REGION + 4, zone: (zone) => zones.push(zone),
    get u0() { return u0; }, get u1() { return u1; }, get width() { return width; },
  };
  const cpus = kt.cpuLanes(m, view);
  // Single calls are drawn where they are few enough to be distinguished. A view's width on both sides is read in advance.
  const fetchDetail = () => {
    const from = m.toTime(u0), to = m.toTime(u1), length = u1 - u0;
    const { events, here } = kt.eventsIn(from, to);
    if (events > kt.mostEvents || !here) return;
    if (loaded && loaded.from <= from && loaded.to >= to) return;
    const wide = { from: m.toTime(Math.max(0, u0 - length)), to: m.toTime(Math.min(m.length, u1 + length)) };
    const range = kt.eventsIn(wide.from, wide.to).events <= kt.mostEvents ? wide : { from, to };
    const mine = loading = {};
    kt.working++;
    kt.collect(range.from, range.to).then((windows) => {
      if (mine !== loading) return;
      loaded = { ...range, windows: windows.map(m.placed) };
      soon();
    }).finally(() => { kt.working--; });
  };
  const open = () => {
    if (!loaded || kt.eventsIn(m.toTime(u0), m.toTime(u1)).events > kt.mostEvents) return [];
    return loaded.windows.filter((w) => w.u1 > u0 && w.u0 < u1);
  };
  const arrange = () => {
    const seen = new Map();
    detailed = open();
    for (const w of detailed) for (const c of w.calls) {
      if (c.u1 >= u0 && c.u0 <= u1) seen.set(c.lane, Math.max(seen.get(c.lane) || 0, c.depth + 1));
    }
    let y = view.TOP + (cpus ? cpus.height : 0);
    left = 0;
    places = m.lanes.map((lane, at) => {
      // When zoomed in, threads without activity are left out.
      if (isTask(lane) && (u0 > 0 || u1 < m.length) && !seen.has(at) && busy(at) === 0) {
        left++;
        return { y: OFF, rows: 0 };
      }
      const place = { y, rows: seen.get(at) || 0 };
      y += BAND + place.rows * CALL + GAP;
      return place;
    });
    return y + 2;
  };
  const step = (length, room) => {
    const rough = length / room;
    const size = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * size).find((s) => s >= rough) || size * 10;
  };
  const axis = (g) => {
    const ink = kt.css("--ink"), quiet = kt.css("--quiet"), rule = kt.css("--rule");
    g.font = "11px system-ui, sans-serif";
    const by = Math.max(1, step(u1 - u0, plot() / 110));
    let free = LEFT, first = null;
    for (const span of m.spans) {
      const end = span.u + span.end - span.begin;
      if (end < u0 || span.u > u1) continue;
      const from = Math.max(span.u, u0), to = Math.min(end, u1);
      if (span.u > u0) {
        g.strokeStyle = quiet;
        g.setLineDash([2, 3]);
        g.beginPath();
        g.moveTo(x(span.u), 2);
        g.lineTo(x(span.u), canvas.clientHeight);
        g.stroke();
        g.setLineDash([]);
      }
      const t0 = span.begin + from - span.u, t1 = span.begin + to - span.u;
      for (let t = Math.ceil(t0 / by) * by; t <= t1; t += by) {
        const at = x(span.u + t - span.begin);
        g.strokeStyle = rule;
        g.beginPath();
        g.moveTo(at + 0.5, AXIS - 4);
        g.lineTo(at + 0.5, canvas.clientHeight);
        g.stroke();
        // The first label is complete; the others are relative to it if that is shorter.
        let text;
        if (first === null || by >= 1e6) text = kt.data.exact ? (t / 1e6).toLocaleString("en-US", { minimumFractionDigits: Math.max(0, Math.ceil(6 - Math.log10(by))), maximumFractionDigits: Math.max(0, Math.ceil(6 - Math.log10(by))) }) + " M" : (t / 1e9).toFixed(Math.max(0, Math.ceil(9 - Math.log10(by)))) + " s";
        else text = "+" + kt.amount(t - first);
        const w = g.measureText(text).width;
        const left = Math.max(LEFT, Math.min(at - w / 2, width - w));
        if (left > free) {
          g.fillStyle = first === null ? ink : quiet;
          g.fillText(text, left, AXIS / 2);
          free = left + w + 12;
          if (first === null) first = t;
        }
      }
    }
  };
  const regions = (g) => {
    const ink = kt.css("--ink");
    g.font = "11px system-ui, sans-serif";
    let free = LEFT;
    m.regions.filter((r) => r.depth === 0).forEach((r, at) => {
      const a = Math.max(LEFT, x(r.u0)), b = Math.min(width, x(r.u1));
      if (b <= LEFT || a >= width || b - a < 0.5) return;
      g.fillStyle = at % 2 ? kt.css("--same-soft") : kt.css("--rule");
      g.fillRect(a, AXIS, b - a, REGION - 2);
      zones.push({ x0: a, x1: b, y0: AXIS, y1: AXIS + REGION, head: "region " + r.name, lines: [["begins", kt.moment(r.begin)], ["elapsed", kt.amount(r.end - r.begin)], ["operations", kt.grouped(r.operations)]], go: [r.u0, r.u1] });
      const letters = Math.floor((b - Math.max(a, free) - 8) / 6.2);
      const text = kt.cut(r.name, letters);
      if (text && letters >= 3) {
        g.fillStyle = ink;
        g.fillText(text, Math.max(a, free) + 4, AXIS + REGION / 2 - 1);
        free = Math.max(a, free) + 8 + g.measureText(text).width;
      }
    });
  };
  // Shares of time per pixel from the running sums.
  const density = (g, lane, y) => {
    const [kernel, user] = m.sums[lane];
    const per = (u1 - u0) / plot();
    let begin = 0, h0 = -1, h1 = -1;
    const flush = (end) => {
      if (h0 + h1 <= 0) return;
      const a = LEFT + begin, w = end - begin;
      if (h0 > 0) { g.fillStyle = color(lane, 0); g.fillRect(a, y + BAND - h0, w, h0); }
      if (h1 > 0) { g.fillStyle = color(lane, 1); g.fillRect(a, y + BAND - h0 - h1, w, h1); }
    };
    let k = m.upTo(kernel, u0), s = m.upTo(user, u0);
    for (let px = 0; px < plot(); px++) {
      const end = u0 + (px + 1) * per;
      const k1 = m.upTo(kernel, end), s1 = m.upTo(user, end);
      const a = (k1 - k) / per * BAND, b = (s1 - s) / per * BAND;
      // At least a hairline, so that rare events stay visible.
      const r0 = a > 0.01 ? Math.max(1, Math.round(a * 2) / 2) : 0, r1 = b > 0.01 ? Math.max(1, Math.round(b * 2) / 2) : 0;
      if (r0 !== h0 || r1 !== h1) { flush(px); begin = px; h0 = r0; h1 = r1; }
      k = k1; s = s1;
    }
    flush(plot());
  };
  const solid = (g, slices) => {
    for (const s of slices) {
      if (s.u1 < u0 || s.u0 > u1) continue;
      const a = Math.max(LEFT, x(s.u0)), b = Math.min(width, x(s.u1));
      if (b - a < 0.5) continue;
      const y = places[s.lane].y;
      g.fillStyle = color(s.lane, s.user);
      g.fillRect(a, y, Math.max(1, b - a - (b - a > 4 ? 0.5 : 0)), BAND);
      const lane = m.lanes[s.lane];
      const what = lane.kind === "thread" || lane.kind === "others" ? (s.user ? "user mode" : "kernel") : lane.kind === "task" ? "idle task" : lane.name;
      const where = cpus && lane.kind !== "idle" ? [["on", "CPU " + s.cpu]] : [];
      zones.push({ x0: a, x1: b, y0: y, y1: y + BAND, head: lane.name, lines: [["", what], ...where, ["from", kt.moment(s.begin)], ["for", kt.amount(s.end - s.begin)]] });
    }
  };
  const calls = (g, w, letter) => {
    g.font = kt.FONT;
    const last = new Map();
    for (const c of w.calls) {
      if (c.u1 < u0 || c.u0 > u1) continue;
      const a = Math.max(LEFT, x(c.u0)), b = Math.min(width, x(c.u1));
      const y = places[c.lane].y + BAND + 1 + c.depth * CALL;
      const row = c.lane * 1000 + c.depth;
      if (b - a < 0.7) {
        // Several calls within one pixel are one line.
        if (last.get(row) >= a) continue;
        last.set(row, a + 0.8);
      }
      g.fillStyle = kt.color(c.f, c.how);
      g.fillRect(a, y, Math.max(0.8, b - a - (b - a > 3 ? 1 : 0)), CALL - 1);
      if (c.how === "interrupt" && b - a > 2) { g.fillStyle = "#a33b12"; g.fillRect(a, y, Math.min(3, b - a), CALL - 1); }
      if (b - a > 4 * letter) {
        const text = kt.cut(kt.name(c.f), Math.floor((b - a - 7) / letter));
        g.fillStyle = "#14171b";
        if (text) g.fillText(text, a + (c.how === "interrupt" ? 5 : 3), y + CALL / 2);
      }
      if (c.f === kt.state.fn) { g.strokeStyle = kt.css("--ink"); g.lineWidth = 1.5; g.strokeRect(a + 0.75, y + 0.75, Math.max(1, b - a - 2.5), CALL - 2.5); }
      drawn.push({ x0: a, x1: Math.max(b, a + 1), y0: y, y1: y + CALL, call: c, window: w });
    }
    // While a thread was off the CPU, its open calls only wait.
    g.fillStyle = kt.css("--veil");
    for (const [lane, place] of places.entries()) {
      if (!place.rows || !isTask(m.lanes[lane])) continue;
      let from = w.u0;
      const veil = (to) => {
        const a = Math.max(LEFT, x(from)), b = Math.min(width, x(to));
        if (b - a > 0.5) g.fillRect(a, place.y + BAND + 1, b - a, place.rows * CALL);
      };
      // Interrupts are on the stack of the thread that they hit: the one that ran on that CPU before. Time in which all CPUs are
      // halted does not belong to any thread.
      const isHalt = (s) => cpus && m.lanes[s.lane].kind === "idle";
      const says = (s) => m.lanes[s.lane].kind !== "interrupt" && !isHalt(s);
      const on = new Map();
      for (const s of w.slices) if (says(s) && !on.has(s.cpu)) on.set(s.cpu, s.lane);
      for (const s of w.slices) {
        if (says(s)) on.set(s.cpu, s.lane);
        if (isHalt(s) || on.get(s.cpu) !== lane) continue;
        veil(s.u0);
        from = Math.max(from, s.u1);
      }
      veil(w.u1);
    }
  };
  const draw = () => {
    const began = performance.now();
    width = canvas.clientWidth;
    const height = arrange();
    const { draw: g } = kt.fit(canvas, height);
    drawn = [];
    zones = [];
    const letter = kt.letter();
    axis(g);
    regions(g);
    g.save();
    g.beginPath();
    g.rect(LEFT, 0, plot(), height);
    g.clip();
    const dark = kt.isDark();
    g.globalAlpha = dark ? 0.86 : 1;
    places.forEach((place, lane) => {
      g.fillStyle = kt.css("--panel");
      g.fillRect(LEFT, place.y, plot(), BAND);
    });
    // Bins are averages: paler where single stretches could be distinguished.
    const binWidth = m.length / m.count / (u1 - u0) * plot();
    g.globalAlpha = (dark ? 0.86 : 1) * (binWidth > 3 ? 0.5 : 1);
    places.forEach((place, lane) => density(g, lane, place.y));
    g.globalAlpha = dark ? 0.86 : 1;
    if (cpus) cpus.draw(g, binWidth, detailed);
    if (binWidth > 1) solid(g, m.slices);
    for (const w of detailed) {
      const a = Math.max(LEFT, x(w.u0)), b = Math.min(width, x(w.u1));
      g.fillStyle = kt.css("--panel");
      for (const place of places) g.fillRect(a, place.y, b - a, BAND);
      solid(g, w.slices);
      calls(g, w, letter);
    }
    g.globalAlpha = 1;
    // Time outside of the selection is dimmed.
    const sel = selected();
    if (sel) {
      const [a, b] = sel.map(x);
      g.fillStyle = kt.css("--veil");
      g.fillRect(LEFT, AXIS, Math.max(0, a - LEFT), height);
      g.fillRect(b, AXIS, Math.max(0, width - b), height);
      g.fillStyle = kt.css("--focus");
      for (const edge of [a, b]) g.fillRect(edge - 1, AXIS - 6, 2, height);
    }
    g.restore();
    m.lanes.forEach((lane, at) => {
      const pid = lane.pid && !small ? " " + lane.pid : "";
      label(g, kt.cut(lane.name, (small ? 8 : 18) - pid.length), pid, busy(at), places[at].y);
    });
    if (cpus) cpus.labels(g);
    say();
    root.dataset.timelineMs = (performance.now() - began).toFixed(1);
  };
  // Edges of the selection on the page's scale; during a drag, of the new selection.
  const selected = () => {
    if (drag && drag.select) return [Math.min(drag.select[0], drag.select[1]), Math.max(drag.select[0], drag.select[1])];
    const sel = kt.state.profile === "a" ? kt.selection() : null;
    return sel && [m.toU(sel[0]), m.toU(sel[1])];
  };
  const say = () => {
    const from = m.toTime(u0), to = m.toTime(u1);
    const words = ["In view: " + kt.amount(u1 - u0) + " from " + kt.moment(from) + ". "];
    const { events, here } = kt.eventsIn(from, to);
    if (kt.state.profile !== "a") words.push("This is the first profile's timeline; selections are off while two are shown. ");
    if (events > kt.mostEvents) words.push("Zoom in for single calls. ");
    else if (!here) words.push("The single calls of this stretch are not on the page; ", kt.make("code", {}, "kerntune view " + kt.data.id), " shows them. ");
    if (left > 0) words.push(kt.grouped(left) + (left === 1 ? " thread" : " threads") + " did nothing here. ");
    status.replaceChildren(...words);
  };
  const soon = kt.soon(draw);
  const show = (a, b) => {
    const least = Math.min(20, m.length);
    let length = Math.min(m.length, Math.max(least, b - a));
    const begin = Math.max(0, Math.min((a + b - length) / 2, m.length - length));
    u0 = begin;
    u1 = begin + length;
    kt.set(length >= m.length ? { from: null, to: null } : { from: m.toTime(u0), to: m.toTime(u0) + length });
    fetchDetail();
    soon();
  };
  const zoom = (factor, at) => {
    const middle = at === undefined ? (u0 + u1) / 2 : at;
    show(middle - (middle - u0) * factor, middle + (u1 - middle) * factor);
  };
  const toWindow = (w) => { const edge = (w.u1 - w.u0) * 0.02; show(w.u0 - edge, w.u1 + edge); };
  kt.showTime = (begin, end) => { const a = m.toU(begin); show(a - (end - begin) * 0.05, a + (end - begin) * 1.05); };
  const choice = byId("window");
  choice.append(kt.make("option", { value: "" }, "…"), ...m.places.map((w, at) => kt.make("option", { value: String(at) }, w.label)));
  choice.addEventListener("change", () => { if (choice.value !== "") toWindow(m.places[Number(choice.value)]); });
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => show(0, m.length));
  kt.swatches(byId("time-legend"), [["kernel", COLORS.kernel], ["user", COLORS.user], ["interrupt", COLORS.interrupt], ["idle", COLORS.idle], ...(cpus ? cpus.legend : [])]);
  const select = (a, b) => {
    const from = Math.round(m.toTime(Math.max(0, a))), to = Math.round(m.toTime(Math.min(m.length, b)));
    if (to > from && kt.state.profile === "a") kt.set({ sel: from + "-" + to });
  };
  const clear = () => kt.set({ sel: null });
  byId("select-view").addEventListener("click", () => select(u0, u1));
  byId("select-none").addEventListener("click", clear);
  const able = () => { byId("select-none").disabled = !kt.state.sel; byId("select-view").disabled = kt.state.profile !== "a"; };
  kt.on(["sel", "profile"], () => { able(); soon(); });
  able();

  const under = (event) => {
    const box = canvas.getBoundingClientRect();
    const px = event.clientX - box.left, py = event.clientY - box.top;
    const hit = (r) => r.x0 <= px && px <= r.x1 && r.y0 <= py && py < r.y1;
    const sel = selected();
    const edge = sel ? sel.findIndex((u) => Math.abs(x(u) - px) < 5) : -1;
    return { px, py, edge, u: u0 + (px - LEFT) / plot() * (u1 - u0), call: drawn.findLast(hit), zone: zones.findLast(hit) };
  };
  // Dragging in the lanes selects, dragging the axis moves; the edges of the selection can be dragged.
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const { u, py, px, edge } = under(event), sel = selected();
    if (px < LEFT - 4) return;
    drag = { x: event.clientX, u0, u1, u, moved: false, pan: py < AXIS || event.shiftKey, anchor: edge >= 0 ? sel[1 - edge] : u };
  });
  window.addEventListener("pointerup", () => {
    if (drag && drag.select) { const [a, b] = selected(); drag.select = null; select(a, b); }
    setTimeout(() => { drag = null; soon(); });
  });
  window.addEventListener("pointercancel", () => { drag = null; soon(); });
  window.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
    if (!drag.moved) return;
    kt.untip();
    if (drag.pan) {
      const by = (drag.x - event.clientX) / plot() * (drag.u1 - drag.u0);
      show(drag.u0 + by, drag.u1 + by);
    } else if (kt.state.profile === "a") {
      drag.select = [drag.anchor, Math.max(u0, Math.min(u1, under(event).u))];
      soon();
    }
  });
  canvas.addEventListener("mousemove", (event) => {
    if (drag && drag.moved) return;
    const { call, zone, py, px, edge } = under(event);
    canvas.style.cursor = edge >= 0 ? "ew-resize" : call || zone && zone.go ? "pointer" : py < AXIS ? "grab" : px > LEFT ? "crosshair" : "default";
    if (call) {
      const c = call.call;
      const lines = [["elapsed", kt.amount(c.end - c.begin) + (c.cut ? " in what is shown" : "")], ["begins", kt.moment(c.begin)], ["on the stack of", m.lanes[c.lane].name], ["came to run by", c.how]];
      const ran = cpus && cpus.of(call.window, c);
      if (ran) lines.push(["ran on CPU", ran]);
      if (kt.file(c.f)) lines.push(["source", kt.file(c.f)]);
      kt.tip(event.clientX, event.clientY, kt.name(c.f), lines);
    } else if (zone) kt.tip(event.clientX, event.clientY, zone.head, zone.lines);
    else kt.untip();
  });
  canvas.addEventListener("mouseleave", kt.untip);
  canvas.addEventListener("click", (event) => {
    if (drag && drag.moved) return;
    const { call, zone } = under(event);
    if (call && call.call.f >= 0) kt.set({ fn: call.call.f });
    else if (zone && zone.go) show(...zone.go);
  });
  canvas.addEventListener("dblclick", (event) => {
    const { call, u } = under(event);
    if (call) { const { u0: a, u1: b } = call.call; show(a - (b - a) * 0.05, b + (b - a) * 0.05); }
    else zoom(0.25, u);
  });
  canvas.addEventListener("wheel", (event) => {
    const { px, u } = under(event);
    // Over the names the wheel scrolls the page as usual.
    if (px < LEFT) return;
    event.preventDefault();
    kt.untip();
    const lines = event.deltaMode === 1 ? 30 : 1, sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways) { const by = (event.deltaX || event.deltaY) * lines / 1000 * (u1 - u0); show(u0 + by, u1 + by); }
    else zoom(Math.exp(event.deltaY * lines / 400), u);
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const by = (u1 - u0) / 8;
    const next = (forward) => {
      const order = m.places.slice().sort((a, b) => a.u0 - b.u0);
      const middle = (u0 + u1) / 2;
      const found = forward ? order.find((w) => (w.u0 + w.u1) / 2 > middle + 1) : order.reverse().find((w) => (w.u0 + w.u1) / 2 < middle - 1);
      if (found) toWindow(found);
    };
    const left = () => show(u0 - by, u1 - by), right = () => show(u0 + by, u1 + by), nearer = () => zoom(0.5), farther = () => zoom(2), all = () => show(0, m.length);
    const act = { ArrowLeft: left, ArrowRight: right, a: left, d: right, "+": nearer, "=": nearer, w: nearer, "-": farther, s: farther, 0: all, Home: all, n: () => next(true), p: () => next(false), Enter: () => select(u0, u1), Escape: clear }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  kt.on(["fn"], soon);
  kt.on(["region"], () => {
    if (kt.restoring) return;
    const name = kt.data.views[kt.state.region].name;
    const found = m.regions.find((r) => r.name === name);
    if (found) show(found.u0, found.u1); else show(0, m.length);
  });
  const follow = () => {
    const { from, to } = kt.state;
    const a = from === null ? 0 : m.toU(from), b = from === null ? m.length : a + to - from;
    if (a === u0 && b === u1) return;
    [u0, u1] = [Math.max(0, Math.min(a, m.length - 1)), Math.min(m.length, b)];
    fetchDetail();
    soon();
  };
  kt.on(["from", "to"], () => { if (kt.restoring) follow(); });
  follow();
  kt.redraw(canvas, soon);
  fetchDetail();
  draw();
  kt.measureTime = () => { const at = performance.now(); draw(); return performance.now() - at; };
  kt.timeShow = show;
  kt.timeSelect = select;
  kt.timeModel = m;
  kt.timeView = () => ({ u0, u1, left: LEFT, calls: drawn.length });
};
