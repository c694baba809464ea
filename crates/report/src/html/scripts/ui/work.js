// @ts-check
// Work that is pending: until it is done, the page is not settled.
import { byId } from "./dom.js";

export const pending = { count: 0 };
/** Shows what is being waited for; empty for nothing.
 * @param {string} text */
export const say = (text) => { byId("busy").textContent = text; };
/** @template T @param {() => Promise<T>} act @returns {Promise<T>} */
export const tracked = async (act) => {
  pending.count++;
  try {
    return await act();
  } finally {
    pending.count--;
  }
};
/** Coalesces several calls per frame into the last one.
 * @param {() => void} act */
export const soon = (act) => {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
};
/** Delays content further down the page until after the first frame.
 * @param {() => void} act */
export const afterwards = (act) => {
  let due = false;
  return () => {
    if (due) return;
    due = true;
    pending.count++;
    requestAnimationFrame(() => setTimeout(() => {
      due = false;
      try {
        act();
      } finally {
        pending.count--;
      }
    }, 0));
  };
};
// Resolves when no work has been pending for two frames.
export const settled = async () => {
  for (let quiet = 0; quiet < 2;) {
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    quiet = pending.count > 0 ? 0 : quiet + 1;
  }
};
