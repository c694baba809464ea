// Source of data in a served page: its server.
const ask = async (what, more) => {
  const answer = await fetch(what, more);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
};
kt.source = {
  served: true,
  chunk: async (chunk) => new Uint8Array(await (await ask("chunk?n=" + chunk.number)).arrayBuffer()),
  select: async (from, to, isStale) => {
    const answer = await ask("select?from=" + Math.round(from) + "&to=" + Math.round(to));
    const found = await kt.inflate(await answer.arrayBuffer());
    return isStale() ? null : found;
  },
  code: async (fn) => {
    if (kt.data.symbol[fn] === undefined) return "The first profile has no such function.";
    const answer = await ask("code?f=" + kt.data.symbol[fn]);
    return answer.headers.get("content-type").startsWith("text/") ? answer.text() : kt.inflate(await answer.arrayBuffer());
  },
  overview: async () => {
    for (;;) {
      const answer = await ask("overview");
      if (answer.status === 200) return kt.inflate(await answer.arrayBuffer());
      kt.said(await answer.text());
      await new Promise((done) => setTimeout(done, 100));
    }
  },
};
