// @ts-check
// Codes of nodes and callers that are not functions, kinds of entries, and states of a CPU:
// numbers.rs, cpus.rs and the trace format have the same.
export const NONE = -1;
export const USER = -2;
export const INTERRUPT = -3;
export const IDLE = -4;
export const UNATTRIBUTED = -5;
export const SMALLER = -6;
export const OTHERS = -7;
export const THREAD = -16;

export const CALL = 0;
export const JUMP = 1;
export const INTERRUPTED = 2;
export const EXCEPTION = 3;

export const CPU_KERNEL = 0;
export const CPU_USER = 1;
export const CPU_INTERRUPT = 2;
export const CPU_IDLE = 3;
export const CPU_HALTED = 4;
export const CPU_WAITS = 5;

// Instead of a chunk's offset: it is not on the page; it has nothing of the page's regions.
export const LEFT_OUT = -1;
export const ELSEWHERE = -2;
