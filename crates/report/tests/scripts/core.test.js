// Modules of the page that need no browser: `node --test`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { axisLabel, axisStep } from "../../src/html/scripts/core/axis.js";
import { bucketLow, bucketOf } from "../../src/html/scripts/core/buckets.js";
import { IDLE, OTHERS, SMALLER, THREAD } from "../../src/html/scripts/core/codes.js";
import { data, fileOf, moduleOf, nameOf } from "../../src/html/scripts/core/data.js";
import {
  amount, cutText, formatChange, formatCount, formatTime, moment, percent, signed, withUnit,
} from "../../src/html/scripts/core/format.js";
import { applyOperations, outermost, rawTree } from "../../src/html/scripts/core/raw.js";
import { tablesFrom, tablesOf } from "../../src/html/scripts/core/tables.js";
import { children, hasChildren, pathTo, treeOf } from "../../src/html/scripts/core/tree.js";
import {
  follow, formatOperations, numberOf, parseOperations, wayTo, wordOf,
} from "../../src/html/scripts/core/words.js";
import { KIND, OTHER } from "../../src/html/scripts/trace/events.js";
import { percentile, stacksOf } from "../../src/html/scripts/views/histogram_scale.js";
import { frameAt, layoutFrames, nodeBeside } from "../../src/html/scripts/views/icicle_layout.js";

Object.assign(data, {
  exact: true, origin: 472_339_253, calls: true, sample_ns: 0,
  hows: ["call", "jump", "interrupt", "exception", "syscall"],
  names: ["read", "walk", "copy", "a,b;c"], file: [0, 0, -1, -1], module: [-1, -1, 0, -1],
  files: ["fs/read.c"], modules: ["disk"], comms: ["init", "a~b"], symbol: [10, 11, 12, 13], groups: [],
});
// read calls walk and copy; walk calls read and copy.
const columns = () => ({
  d: [0, 1, 2, 3, 3, 2], f: [THREAD, 0, 1, 0, 2, 2], h: [0, 4, 0, 0, 0, 1], c: [0, 2, 2, 1, 1, 3],
  w: [[0, 10, 20, 5, 7, 3]],
});
const tree = () => rawTree(columns());
const sum = (raw) => raw.roots.reduce((all, at) => all + raw.sums[0][at], 0);

test("figures have three digits and a unit", () => {
  assert.deepEqual([0, 9_999, 10_000, 999_499, 1e6, 1.5e9].map(formatCount), [
    "0", "9,999", "10.0 k", "999 k", "1.00 M", "1,500 M",
  ]);
  assert.deepEqual([7, 1_500, 2.5e6, 3e9].map(formatTime), ["7 ns", "1.50 µs", "2.50 ms", "3.00 s"]);
  assert.deepEqual([withUnit(1), amount(12_345)], ["1 instruction", "12.3 k"]);
  assert.deepEqual([percent(1, 3), percent(1, 1e6), percent(1, 0)], ["33.3 %", "<0.01 %", "0 %"]);
  assert.deepEqual([formatChange(2, 1), formatChange(0, 1), formatChange(1, 0), formatChange(1, 1)], [
    "\u221250.0 %", "new", "gone", "±0 %",
  ]);
  assert.equal(signed(-3, String), "\u22123");
  assert.deepEqual([cutText("abcdefgh", 5), cutText("abcdefgh", 3)], ["abcd…", ""]);
});
test("moments are counted from the begin of the first region", () => {
  assert.equal(moment(data.origin), "0.000\u202f000 ms");
  assert.equal(moment(data.origin + 1_234_567_890), "1,234.567\u202f890 ms");
  assert.equal(moment(data.origin - 1), "\u22120.000\u202f001 ms");
});
test("the axis has round steps and as many digits as they need", () => {
  assert.deepEqual([axisStep(1e9, 7), axisStep(10, 100)], [2e8, 1]);
  assert.deepEqual(
    [axisLabel(0, 2e8), axisLabel(2e8, 2e8), axisLabel(1_500, 500)], ["0 ms", "200 ms", "0.0015 ms"],
  );
});
test("a bucket begins where the one before it ends", () => {
  for (let bucket = 0; bucket < 200; bucket++) {
    assert.equal(bucketOf(bucketLow(bucket)), bucket);
    assert.equal(bucketOf(bucketLow(bucket + 1) - 1), bucket);
  }
});
test("names, and words for the address, tell functions, threads and the rest apart", () => {
  assert.deepEqual(
    [1, THREAD, IDLE, OTHERS].map(nameOf), ["walk", "thread init", "idle task", "other callers"],
  );
  assert.deepEqual([fileOf(1), moduleOf(2), fileOf(2), fileOf(IDLE)], ["fs/read.c", "disk", "", ""]);
  for (const f of [0, 3, THREAD, THREAD - 1, SMALLER]) assert.equal(numberOf(wordOf(f)), f);
  assert.deepEqual([numberOf("none"), numberOf("~none"), numberOf("%")], [undefined, undefined, undefined]);
  const operations = [["drop", 3], ["focus", THREAD - 1]];
  assert.deepEqual(parseOperations(formatOperations(operations)), operations);
  assert.deepEqual(parseOperations("drop:none;hide:read"), []);
});
test("operations on paths move or remove what a function did", () => {
  const whole = sum(tree());
  assert.equal(whole, 45);
  assert.equal(sum(applyOperations(tree(), [["drop", 2]])), whole - 10);
  const merged = applyOperations(tree(), [["merge", 1]]);
  assert.deepEqual([sum(merged), [...merged.f]], [whole, [THREAD, 0, 0, 2, 2]]);
  const focused = applyOperations(tree(), [["focus", 1]]);
  assert.deepEqual([sum(focused), [...focused.f]], [32, [1, 0, 2]]);
  assert.deepEqual(outermost(tree(), (f) => f === 0), [1]);
});
test("tables of a tree count recursion once", () => {
  const { functions, callers } = tablesFrom([tree()]), read = functions.get(0);
  assert.deepEqual([read.calls, read.net, read.elapsed], [3, 15, 45]);
  assert.deepEqual(
    callers.get(2).map((arc) => [arc.from, arc.how, arc.calls]), [[1, "call", 1], [0, "jump", 3]],
  );
});
test("tables of several groups are added up, and the earlier of two slowest calls stays", () => {
  const group = (at) => ({
    functions: { f: [1], calls: [2], ended: [1], net: [3], elapsed: [4], slowest: [4], at: [at] },
    arcs: { from: [0], to: [1], h: [0], calls: [2], ended: [1], elapsed: [4] },
    histograms: { f: [1], c: [0], b: [4], n: [1] },
  });
  const { functions, histograms, callees } = tablesOf([group(9), group(5)]), row = functions.get(1);
  assert.deepEqual([row.calls, row.ended, row.net, row.elapsed, row.slowest, row.at], [4, 2, 6, 8, 4, 5]);
  assert.deepEqual([histograms.get(1).length, callees.get(0)[0].calls], [2, 4]);
});
test("trees on display are merged by function, heaviest first, and found again by their path", () => {
  const down = treeOf([tree(), tree()], "down", -1), [root] = children(down, -1, 0);
  const [read] = children(down, root, 0);
  const kids = children(down, read, 0);
  const figures = kids.map((node) => [down.f[node], down.all[0][node]]);
  assert.deepEqual([down.totals[0], figures], [90, [[1, 64], [2, 6]]]);
  assert.equal(follow(down, wayTo(down, kids[1])), kids[1]);
  assert.deepEqual([pathTo(down, kids[0]), hasChildren(down, kids[1])], [[root, read, kids[0]], false]);
  const up = treeOf([tree()], "up", -1), copy = up.f.indexOf(2);
  assert.deepEqual([up.all[0][copy], children(up, copy, 0).map((node) => up.f[node])], [10, [1, 0]]);
  assert.equal(treeOf([tree()], "to", 2).totals[0], 10);
});
test("frames fill the width, and narrow ones are one box", () => {
  const down = treeOf([tree()], "down", -1), rows = layoutFrames(down, 0, -1, down.totals[0], 45);
  assert.deepEqual(rows.map((row) => row.map((frame) => frame.w)), [[45], [45], [32, 3], [7, 5]]);
  assert.equal(frameAt(rows[2], 33).node, children(down, 1, 0)[1]);
  assert.equal(frameAt(rows[2], 40), null);
  const narrow = layoutFrames(down, 0, -1, down.totals[0], 4);
  assert.deepEqual(narrow[2].map((frame) => frame.more), [0, 1]);
});
test("arrow keys walk the tree", () => {
  const down = treeOf([tree()], "down", -1), [root] = children(down, -1, 0), [read] = children(down, root, 0);
  const kids = children(down, read, 0);
  /** @param {string} key @param {number} at */
  const to = (key, at) => nodeBeside(down, key, at, at, 0);
  assert.deepEqual([to("ArrowDown", -1), to("ArrowDown", read)], [root, kids[0]]);
  assert.deepEqual([to("ArrowUp", kids[0]), to("ArrowUp", root)], [read, -1]);
  assert.deepEqual([to("ArrowRight", kids[0]), to("ArrowLeft", kids[1])], [kids[1], kids[0]]);
  assert.deepEqual([to("ArrowUp", -1), to("ArrowLeft", kids[0])], [undefined, undefined]);
});
test("a histogram tells the most frequent callers apart", () => {
  const rows = [[0, 4, 30], [1, 5, 20], [2, 6, 10], [OTHERS, 6, 40]].map(([caller, bucket, count]) =>
    ({ caller, bucket, count }));
  const stacks = stacksOf(rows, 2, true);
  assert.deepEqual([stacks.order, stacks.total, stacks.low, stacks.high], [[0, 1], 100, 3, 7]);
  assert.deepEqual(stacks.stacks[6 - 3], [0, 0, 50]);
  assert.deepEqual([percentile(stacks, 0.5), percentile(stacks, 0.999)], [5 - 3, -1]);
});
test("events have the codes of the trace's format", () => {
  const format = readFileSync(new URL("../../../trace/src/event.rs", import.meta.url), "utf8");
  for (const [name, codes] of [["kind", KIND], ["other", OTHER]]) {
    const [, constants] = format.match(new RegExp(`mod ${name} \\{([^}]*)\\}`));
    const found = constants.matchAll(/const (\w+): \w+ = (\d+);/g);
    assert.deepEqual(Object.fromEntries([...found].map(([, key, code]) => [key, Number(code)])), codes);
  }
});
