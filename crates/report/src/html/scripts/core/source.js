// @ts-check
// Where the page has its data from; the entry script (file.js, served.js) fills it in.
export const source = /** @type {PageSource} */ ({});
