// @ts-check
// Timeline data with running sums for fast drawing. Position `u` counts recorded time only: gaps
// between recorded stretches have no width.
import { data } from "../core/data.js";

const LANE_STATES = 2;
const CPU_STATES = 6;

/** Converts times to positions.
 * @param {TimelineModel["spans"]} spans @param {number} length */
const scaleOf = (spans, length) => {
  /** @param {number} time */
  const toU = (time) => {
    for (const span of spans) if (time < span.end) return span.u + Math.max(0, time - span.begin);
    return length;
  };
  /** @param {number} u */
  const toTime = (u) => {
    const span = spans.find((s) => u < s.u + s.end - s.begin) || spans[spans.length - 1];
    return span.begin + Math.min(span.end - span.begin, u - span.u);
  };
  /** @template {{ begin: number, end: number }} T @param {T} of @returns {Placed<T>} */
  const placed = (of) => {
    const u0 = toU(of.begin);
    return { ...of, u0, u1: u0 + of.end - of.begin };
  };
  return { toU, toTime, placed };
};
/** Returns the positions of the bins' edges.
 * @param {TimelineModel["spans"]} spans @param {number} count */
const edgesOf = (spans, count) => {
  const edges = new Float64Array(count + 1);
  for (const { begin, end, first, bins, u } of spans) {
    for (let n = 0; n <= bins; n++) edges[first + n] = u + (end - begin) * n / bins;
  }
  return edges;
};
/** Returns running sums over bins by state.
 * @param {{ b: number[], n: number[] }} bins @param {number[]} states by row
 * @param {number} stateCount
 * @param {number} count */
const runningSums = (bins, states, stateCount, count) => {
  const sums = Array.from({ length: stateCount }, () => new Float64Array(count + 1));
  for (let i = 0, bin = 0; i < bins.b.length; i++) {
    bin += bins.b[i];
    sums[states[i]][bin + 1] += bins.n[i];
  }
  for (const sum of sums) for (let n = 0; n < count; n++) sum[n + 1] += sum[n];
  return sums;
};
/** Unpacks begins and lengths.
 * @template T @param {SliceColumns} columns @param {(i: number) => T} about */
const stretches = (columns, about) => {
  let at = 0;
  return columns.b.map((gap, i) => {
    const begin = at + gap;
    at = begin + columns.n[i];
    return { begin, end: at, ...about(i) };
  });
};
/** Returns the timeline's data; null without a trace.
 * @returns {TimelineModel | null} */
export const timelineModel = () => {
  const { time } = data;
  if (!time || time.spans.length === 0) return null;
  let length = 0;
  const spans = time.spans.map(([begin, end, first, bins]) => {
    const span = { begin, end, first, bins, u: length };
    length += end - begin;
    return span;
  });
  const { toU, toTime, placed } = scaleOf(spans, length), last = spans[spans.length - 1];
  const count = last.first + last.bins, edges = edgesOf(spans, count);
  const laneSums = runningSums(time.bins, time.bins.l, LANE_STATES * time.lanes.length, count);
  const slices = stretches(time.slices, (i) => {
    const of = time.slices.l[i];
    return { lane: of >> 1, user: of & 1, cpu: time.slices.c ? time.slices.c[i] : 0 };
  });
  /** @param {SliceColumns} columns */
  const cpuSlices = (columns) =>
    stretches(columns, (i) => ({ kind: columns.k ? columns.k[i] : 0, lane: columns.l[i] }));
  return {
    spans, length, toU, toTime, count, lanes: time.lanes,
    // Time of a lane up to `u`, in proportion within a bin.
    upTo: (sum, u) => {
      let low = 0, high = count;
      while (low < high) {
        const middle = (low + high) >> 1;
        if (edges[middle + 1] <= u) low = middle + 1;
        else high = middle;
      }
      if (low >= count) return sum[count];
      const part = (u - edges[low]) / (edges[low + 1] - edges[low] || 1);
      return sum[low] + (sum[low + 1] - sum[low]) * Math.max(0, part);
    },
    sums: time.lanes.map((_, lane) => laneSums.slice(LANE_STATES * lane, LANE_STATES * (lane + 1))),
    slices: slices.map(placed),
    places: time.places.map(([label, f, begin, end]) => placed({ label, function: f, begin, end })),
    placed: (window) => ({
      ...placed({ begin: window.begin, end: window.end }),
      calls: window.calls.map(placed),
      slices: window.slices.map(placed),
      cpus: window.cpus.map((list) => list.map(placed)),
    }),
    // A region may lie across a gap.
    regions: time.regions.map(([name, begin, end, depth, operations]) =>
      ({ name, begin, end, depth, operations, u0: toU(begin), u1: toU(end) })),
    cpus: (time.cpus || []).map((cpu) => ({
      sums: runningSums(cpu.bins, cpu.bins.k, CPU_STATES, count),
      slices: cpuSlices(cpu.slices).map(placed),
    })),
  };
};
