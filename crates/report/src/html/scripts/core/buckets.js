// @ts-check
// Buckets of histograms: four for each power of two. kerntune_profile::{bounds, bucket_of} say the
// same.

/** Returns the lower bound of a bucket.
 * @param {number} bucket */
export const bucketLow = (bucket) =>
  bucket < 4 ? bucket : (4 + bucket % 4) * 2 ** (Math.floor(bucket / 4) - 1);
const BEYOND_INT32 = 0x80000000;
/** Returns the bucket of a value.
 * @param {number} n */
export const bucketOf = (n) => {
  if (n < 4) return n;
  let exponent = 31 - Math.clz32(n);
  if (n >= BEYOND_INT32) {
    exponent = Math.floor(Math.log2(n));
    if (2 ** exponent > n) exponent--;
    else if (2 ** (exponent + 1) <= n) exponent++;
  }
  return 4 * (exponent - 1) + Math.floor(n / 2 ** (exponent - 2)) % 4;
};
