// Formats figures with three significant digits and a unit. Exact profiles count instructions, others time: `kt.amount` writes
// either, `kt.withUnit` adds the name of the quantity.
kt.grouped = (n) => Math.round(n).toLocaleString("en-US");
kt.three = (x) => {
  const size = Math.abs(x);
  return x.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};
kt.time = (ns) => {
  if (Math.abs(ns) < 999.5) return (Number.isInteger(ns) ? ns : kt.three(ns)) + " ns";
  for (const [size, unit] of [[1e3, "µs"], [1e6, "ms"]]) {
    if (Math.abs(ns) / size < 999.5) return kt.three(ns / size) + " " + unit;
  }
  return kt.three(ns / 1e9) + " s";
};
kt.count = (n) => {
  const size = Math.abs(n);
  if (size < 9999.5) return Number.isInteger(n) ? kt.grouped(n) : kt.three(n);
  if (size < 999500) return kt.three(n / 1e3) + " k";
  return size < 999.5e6 ? kt.three(n / 1e6) + " M" : kt.grouped(n / 1e6) + " M";
};
kt.amount = (n) => (kt.data.exact ? kt.count(n) : kt.time(n));
kt.withUnit = (n) => (kt.data.exact ? kt.count(n) + (n === 1 ? " instruction" : " instructions") : kt.time(n));
// Returns the counted quantity for a column head.
kt.unit = () => (kt.data.exact ? "instructions" : "time");
kt.percent = (part, whole) => {
  if (!(whole > 0)) return "0 %";
  const share = 100 * part / whole;
  return (share >= 99.95 ? share.toFixed(0) : share >= 10 ? share.toFixed(1) : share >= 0.01 ? share.toFixed(2) : share > 0 ? "<0.01" : "0") + " %";
};
// Formats a difference with its sign; less is better.
kt.signed = (n, write) => (n > 0 ? "+" : n < 0 ? "\u2212" : "±") + write(Math.abs(n));
kt.verdict = (n) => (n < 0 ? "better" : n > 0 ? "worse" : "same");
kt.change = (a, b) => {
  if (a === b) return "±0 %";
  if (!(a > 0)) return "new";
  if (!(b > 0)) return "gone";
  const percent = 100 * (b / a - 1);
  return (percent > 0 ? "+" : "\u2212") + (Math.abs(percent) >= 99.95 ? Math.abs(percent).toFixed(0) : Math.abs(percent) < 0.01 ? "<0.01" : kt.three(Math.abs(percent))) + " %";
};
// Formats a moment of the profiled machine's clock: 3,214.567890 M instructions, or 3.214 567 890 s.
kt.moment = (t) => {
  const digits = String(Math.round(t)).padStart(10, "0");
  if (kt.data.exact) return Number(digits.slice(0, -6)).toLocaleString("en-US") + "." + digits.slice(-6) + " M";
  return digits.slice(0, -9) + "." + digits.slice(-9).replace(/(...)(?=.)/g, "$1\u202f") + " s";
};
// Returns as many characters of a name as fit; empty if none does.
kt.cut = (text, letters) => text.length <= letters ? text : letters < 4 ? "" : text.slice(0, letters - 1) + "…";
