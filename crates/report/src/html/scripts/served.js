// @ts-check
// Entry script of a served page: its data come from the server.
import { data } from "./core/data.js";
import { inflate } from "./ui/load.js";
import { start } from "./main.js";

const ASK_AGAIN_MS = 100;

/** @param {string} what */
const ask = async (what) => {
  const answer = await fetch(what);
  if (!answer.ok) throw new Error(await answer.text());
  return answer;
};
/** @param {string} what */
const bytes = async (what) => (await ask(what)).arrayBuffer();

start({
  chunk: async (chunk) => new Uint8Array(await bytes("chunk?n=" + chunk.number)),
  select: async (from, to, isStale) => {
    const found = await inflate(await bytes("select?from=" + Math.round(from) + "&to=" + Math.round(to)));
    return isStale() ? null : found;
  },
  code: async (f) => {
    if (data.symbol[f] === undefined) return "The first profile has no such function.";
    const answer = await ask("code?f=" + data.symbol[f]);
    const isText = answer.headers.get("content-type")?.startsWith("text/");
    return isText ? answer.text() : inflate(await answer.arrayBuffer());
  },
  overview: async (wait) => {
    for (;;) {
      const answer = await ask("overview");
      if (answer.status === 200) return inflate(await answer.arrayBuffer());
      wait(await answer.text());
      await new Promise((done) => setTimeout(done, ASK_AGAIN_MS));
    }
  },
});
