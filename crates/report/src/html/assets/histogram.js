// Distribution of the selected function's call times: four buckets per power of two.
kt.histogram = () => {
  const svg = byId("histogram"), byCaller = byId("by-caller"), logarithmic = byId("log-count");
  const SHADES = ["#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"], REST = "#8d949d";
  const LEFT = 46, BOTTOM = 34, TOP = 20, HEIGHT = 220;
  const draw = () => {
    if (kt.state.tab !== "histogram") return;
    const rows = kt.view.histograms.get(kt.state.fn) || [];
    const legend = byId("histogram-legend");
    legend.replaceChildren();
    if (rows.length === 0) {
      kt.sheet(svg, 30);
      svg.append(kt.svg("text", { x: 0, y: 18, class: "quiet" }, kt.hasCalls() ? "No call of it ended in what is shown." : "Samples do not tell single calls."));
      return;
    }
    const width = kt.sheet(svg, HEIGHT);
    const callers = new Map();
    for (const r of rows) callers.set(r.caller, (callers.get(r.caller) || 0) + r.count);
    // The most frequent callers differ between regions; here are the six of all.
    const order = [...callers.keys()].filter((c) => c !== kt.OTHERS).sort((a, b) => callers.get(b) - callers.get(a)).slice(0, SHADES.length);
    const place = (caller) => { const at = order.indexOf(caller); return at < 0 ? order.length : at; };
    const low = Math.max(0, Math.min(...rows.map((r) => r.bucket)) - 1), high = Math.max(...rows.map((r) => r.bucket)) + 1;
    const stacks = Array.from({ length: high - low + 1 }, () => new Array(order.length + 1).fill(0));
    for (const r of rows) stacks[r.bucket - low][byCaller.checked ? place(r.caller) : 0] += r.count;
    const sums = stacks.map((s) => s.reduce((a, b) => a + b, 0));
    const total = sums.reduce((a, b) => a + b, 0), most = Math.max(...sums);
    const plot = HEIGHT - TOP - BOTTOM, barWidth = (width - LEFT - 8) / stacks.length;
    const x = (bucket) => LEFT + (bucket - low) * barWidth;
    const level = (n) => (logarithmic.checked ? (n > 0 ? Math.log10(n) + 0.3 : 0) / (Math.log10(most) + 0.3) : n / most) * plot;
    const base = HEIGHT - BOTTOM;
    // Counts at the left.
    const ticks = logarithmic.checked ? Array.from({ length: Math.floor(Math.log10(most)) + 1 }, (_, n) => 10 ** n) : [most / 2, most];
    let free = base + 20;
    for (const n of ticks) {
      const y = base - level(n);
      if (y > free - 13) continue;
      free = y;
      svg.append(kt.svg("line", { x1: LEFT, x2: width, y1: y, y2: y, class: "grid" }));
      svg.append(kt.svg("text", { x: LEFT - 6, y: y + 4, class: "small", "text-anchor": "end" }, kt.count(n)));
    }
    stacks.forEach((stack, at) => {
      if (sums[at] === 0) return;
      const group = kt.svg("g");
      const bucket = at + low;
      const [from, to] = [kt.bucket(bucket), kt.bucket(bucket + 1) - 1];
      let below = 0;
      stack.forEach((n, caller) => {
        if (n === 0) return;
        // On a logarithmic scale, parts of a bar have no length of their own: they divide its length in proportion.
        const [a, b] = logarithmic.checked ? [level(sums[at]) * below / sums[at], level(sums[at]) * (below + n) / sums[at]] : [level(below), level(below + n)];
        group.append(kt.svg("rect", { x: x(bucket) + 0.5, width: Math.max(0.7, barWidth - 1), y: base - b, height: Math.max(0.6, b - a), fill: !byCaller.checked ? SHADES[0] : SHADES[caller] && caller < order.length ? SHADES[caller] : REST }));
        below += n;
      });
      const names = byCaller.checked ? stack.map((n, c) => (n ? "\n" + kt.grouped(n) + " from " + (c < order.length ? callerName(order[c]) : "others") : "")).join("") : "";
      group.append(kt.svg("title", {}, `${kt.amount(from)} to ${kt.withUnit(to)}: ${kt.grouped(sums[at])} calls, ${kt.percent(sums[at], total)}${names}`));
      svg.append(group);
    });
    svg.append(kt.svg("line", { x1: LEFT, x2: width, y1: base + 0.5, y2: base + 0.5, class: "base" }));
    // Times below, as many as fit: powers of two, four buckets apart, where they occur.
    const step = high - low < 8 ? 1 : 4;
    let right = -Infinity;
    for (let bucket = Math.ceil(low / step) * step; bucket <= high + 1; bucket += step) {
      const text = kt.amount(kt.bucket(bucket)), half = text.length * 3.2;
      svg.append(kt.svg("line", { x1: x(bucket), x2: x(bucket), y1: base, y2: base + 4, class: "base" }));
      if (x(bucket) - half < right + 6 || x(bucket) + half > width) continue;
      right = x(bucket) + half;
      svg.append(kt.svg("text", { x: x(bucket), y: base + 16, class: "small", "text-anchor": "middle" }, text));
    }
    svg.append(kt.svg("text", { x: width, y: HEIGHT - 3, class: "small quiet", "text-anchor": "end" }, "elapsed " + kt.unit() + " per call"));
    svg.append(kt.svg("text", { x: 0, y: 11, class: "small quiet" }, "calls"));
    // Percentiles: the buckets in which they lie.
    let labelEnd = LEFT;
    for (const [name, part] of [["median", 0.5], ["90 %", 0.9], ["99 %", 0.99], ["99.9 %", 0.999]]) {
      let seen = 0, at = 0;
      while (at < sums.length - 1 && seen + sums[at] < part * total) seen += sums[at++];
      if (total < 20 && part !== 0.5 || total * (1 - part) < 1 && part !== 0.5) continue;
      const px = x(at + low) + barWidth / 2;
      const text = name + " ≈ " + kt.amount((kt.bucket(at + low) + kt.bucket(at + low + 1) - 1) / 2);
      const w = text.length * 5.9;
      const left = Math.min(Math.max(px + 3, labelEnd), width - w);
      svg.append(kt.svg("line", { x1: px, x2: px, y1: TOP - 6, y2: base, class: "rank" }));
      if (left >= labelEnd) {
        svg.append(kt.svg("text", { x: left, y: 11, class: "small" }, text));
        labelEnd = left + w + 8;
      }
    }
    if (byCaller.checked) {
      const rest = [...callers.keys()].some((c) => !order.includes(c));
      kt.swatches(legend, [...order.map((c, at) => [callerName(c) + " " + kt.count(callers.get(c)), SHADES[at]]), ...(rest ? [["others", REST]] : [])]);
    }
  };
  const callerName = (c) => (c === kt.NONE ? "(entry)" : kt.name(c));
  byCaller.addEventListener("change", draw);
  logarithmic.addEventListener("change", draw);
  kt.on(["fn", "view", "tab"], draw);
  kt.redraw(svg, kt.soon(draw));
  draw();
};
