// @ts-check
// Accounts of the calls of an arc in a group of regions: caller, function, kind of entry.
const FUNCTIONS = 4194304;
const KINDS = 8;

export class Accounts {
  constructor() {
    this.n = 0;
    /** @type {number[]} */
    this.group = [];
    /** @type {number[]} */
    this.caller = [];
    /** @type {number[]} */
    this.f = [];
    /** @type {number[]} */
    this.how = [];
    /** @type {Map<number, number>} */
    this.known = new Map();
  }

  /** Returns the account's number, a new one if it is not known.
   * @param {number} group @param {number} caller @param {number} f @param {number} how */
  of(group, caller, f, how) {
    const key = ((group * FUNCTIONS + caller + 1) * FUNCTIONS + f + 1) * KINDS + how;
    let at = this.known.get(key);
    if (at === undefined) {
      at = this.n++;
      this.known.set(key, at);
      this.group.push(group);
      this.caller.push(caller);
      this.f.push(f);
      this.how.push(how);
    }
    return at;
  }
}
