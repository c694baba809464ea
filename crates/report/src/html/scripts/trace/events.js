// @ts-check
// Codes of the trace's events; crates/trace/src/event.rs has the same.

/** Kinds in the lowest bits of an event's head. */
export const KIND = { CALL: 0, EXIT: 1, JUMP: 2, OTHER: 3 };
/** Kinds in the byte after the head of any other event. */
export const OTHER = {
  INTERRUPT: 0, EXCEPTION: 1, SYSCALL: 2, RESUME: 3, LEAVE: 4, UNWIND: 5, SWITCH: 6, IDLE: 7,
  REGION_BEGIN: 8, REGION_END: 9, OPERATION: 10, POINT: 11, CPU: 12, WAKE: 13, DELAY: 14, MIGRATE: 15,
  SIGNAL: 16, LOCK: 17,
};
/** Events that change nothing here: how many numbers each has.
 * @type {Map<number, number>} */
export const SKIPPED_NUMBERS = new Map([
  [OTHER.OPERATION, 0], [OTHER.POINT, 1], [OTHER.WAKE, 1], [OTHER.SIGNAL, 1], [OTHER.DELAY, 2],
  [OTHER.MIGRATE, 3],
]);
