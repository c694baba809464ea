// @ts-check
// Document of the page (data.rs), filled in by `main.js`; its functions.
import { THREAD } from "./codes.js";

export const data = /** @type {PageDocument} */ ({});

// Sampled times have an error, and calls only if counted by other means.
export const isSampled = () => data.sample_ns > 0;
export const hasCalls = () => data.calls;
/** @param {number} ns */
export const samplingError = (ns) => Math.sqrt(Math.max(1, ns / data.sample_ns)) * data.sample_ns;

/** @type {Record<number, string>} */
const CODE_NAMES = {
  [-1]: "(nothing)",
  [-2]: "user mode",
  [-3]: "interrupts",
  [-4]: "idle task",
  [-5]: "unattributed",
  [-6]: "smaller",
  [-7]: "other callers",
};
/** @param {number} f */
export const nameOf = (f) => {
  if (f >= 0) return data.names[f];
  if (f <= THREAD) return "thread " + data.comms[THREAD - f];
  return CODE_NAMES[f] || "?";
};
/** @param {number} f */
export const fileOf = (f) => (f >= 0 && data.file[f] >= 0 ? data.files[data.file[f]] : "");
/** @param {number} f */
export const moduleOf = (f) => (f >= 0 && data.module[f] >= 0 ? data.modules[data.module[f]] : "");
/** Checks whether a function is of a module that the kernel loaded. @param {number} f */
export const isLoaded = (f) => f >= 0 && (data.loaded ?? []).includes(data.module[f]);
/** Checks whether a function is the kernel's; of the running kernel, modules have a name and
 * programs a path.
 * @param {number} f */
export const isKernel = (f) => f >= 0
  && (isSampled() ? !moduleOf(f).startsWith("/")
    : data.module[f] < 0 || isLoaded(f));
