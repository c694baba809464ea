// Figures into words: three digits that count, and a unit.
kt.grouped = (n) => Math.round(n).toLocaleString("en-US");
kt.three = (x) => {
  const size = Math.abs(x);
  return x.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
};
kt.ns = (ns) => {
  if (ns < 999.5) return (Number.isInteger(ns) ? ns : kt.three(ns)) + " ns";
  for (const [size, unit] of [[1e3, "µs"], [1e6, "ms"]]) {
    if (ns / size < 999.5) return kt.three(ns / size) + " " + unit;
  }
  return kt.three(ns / 1e9) + " s";
};
kt.count = (n) => {
  if (n < 99999.5) return kt.grouped(n);
  for (const [size, unit] of [[1e3, "k"], [1e6, "M"]]) {
    if (n / size < 999.5) return kt.three(n / size) + " " + unit;
  }
  return kt.three(n / 1e9) + " G";
};
kt.percent = (part, whole) => {
  if (!(whole > 0)) return "0 %";
  const share = 100 * part / whole;
  return (share >= 99.95 ? share.toFixed(0) : share >= 10 ? share.toFixed(1) : share >= 0.01 ? share.toFixed(2) : share > 0 ? "<0.01" : "0") + " %";
};
// A moment of virtual time, to the nanosecond: 3.214 567 890 s.
kt.moment = (ns) => {
  const digits = String(Math.round(ns)).padStart(10, "0");
  return digits.slice(0, -9) + "." + digits.slice(-9).replace(/(...)(?=.)/g, "$1\u202f") + " s";
};
// The first characters of a name in the room that there is; empty if there is none.
kt.cut = (text, letters) => text.length <= letters ? text : letters < 4 ? "" : text.slice(0, letters - 1) + "…";
