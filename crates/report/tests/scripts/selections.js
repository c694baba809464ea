// Adds up selections as a page in a file does: `node selections.js INPUT`. INPUT has the data and the trace
// of a page, selections, and numbers. Prints the tables of each selection in the columns of a server's
// answer, the bucket of each number, and the lower bound of each bucket. tests/sums.rs runs it.
import { readFileSync } from "node:fs";
import { inflateSync } from "node:zlib";
import { bucketLow, bucketOf } from "../../src/html/scripts/core/buckets.js";
import { data } from "../../src/html/scripts/core/data.js";
import { source } from "../../src/html/scripts/core/source.js";
import { createSelector } from "../../src/html/scripts/trace/select.js";

const input = JSON.parse(readFileSync(process.argv[2], "utf8"));
Object.assign(data, JSON.parse(inflateSync(Buffer.from(input.data, "base64"))));
source.chunk = async ({ offset, bytes }) => {
  const letters = Math.ceil(bytes / 3) * 4;
  return new Uint8Array(Buffer.from(input.trace.slice(offset, offset + letters), "base64"));
};
// Returns a tree in preorder.
const columns = (raw) => {
  const tree = { d: [], f: [], h: [], c: [], w: raw.own.map(() => []) };
  const visit = (node, depth) => {
    tree.d.push(depth);
    tree.f.push(raw.f[node]);
    tree.h.push(raw.how[node]);
    tree.c.push(raw.calls[node]);
    raw.own.forEach((column, at) => tree.w[at].push(column[node]));
    for (let kid = raw.first[node]; kid >= 0; kid = raw.next[kid]) visit(kid, depth + 1);
  };
  for (const root of raw.roots) visit(root, 0);
  return tree;
};
const select = createSelector(), answers = [];
for (const [from, to] of input.selections) {
  const { groups, times } = await select(from, to, () => false, () => {});
  answers.push({ times, groups: groups.map((group) => ({ ...group, tree: columns(group.tree.raw) })) });
}
const lows = Array.from({ length: input.buckets }, (_, bucket) => bucketLow(bucket));
process.stdout.write(JSON.stringify({ answers, lows, buckets: input.numbers.map(bucketOf) }));
