// Where a page in a file has the trace from: itself.
kt.source = {
  served: false,
  chunk: async (chunk) => {
    if (!kt.blob) kt.blob = byId("kt-trace").textContent.trim();
    return kt.bytes(kt.blob.slice(chunk.offset, chunk.offset + Math.ceil(chunk.bytes / 3) * 4)).subarray(0, chunk.bytes);
  },
  select: (from, to, isStale, progress) => {
    if (!kt.adding) kt.adding = kt.adder();
    return kt.adding.select(from, to, isStale, progress);
  },
};
