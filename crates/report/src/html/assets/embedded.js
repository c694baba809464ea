// Source of the trace in a page that is a file: the page itself.
kt.source = {
  served: false,
  chunk: async (chunk) => {
    if (!kt.blob) kt.blob = byId("kt-trace").textContent.trim();
    return kt.bytes(kt.blob.slice(chunk.offset, chunk.offset + Math.ceil(chunk.bytes / 3) * 4)).subarray(0, chunk.bytes);
  },
  // Returns a function's code, or a sentence that says why it is missing.
  code: async (fn) => {
    const at = kt.data.code.indexOf(fn);
    if (at < 0) return kt.data.code_rest;
    if (!kt.codes) kt.codes = byId("kt-code").textContent.trim().split("\n");
    return kt.inflate(kt.bytes(kt.codes[at]));
  },
  select: (from, to, isStale, progress) => {
    if (!kt.adding) kt.adding = kt.adder();
    return kt.adding.select(from, to, isStale, progress);
  },
};
