// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// Seeds for go-tpc, which draws its transactions from the clock: then no two runs are the same. scripts/tpcc
// puts this file into go-tpc's package util and has it asked in the two places where the clock is.

package util

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var asked int64

// Seed is a number that is another one each time it is asked for, and the same ones in each run with the
// same TPCC_SEED in the environment.
func Seed() int64 {
	first, err := strconv.ParseInt(os.Getenv("TPCC_SEED"), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "go-tpc: TPCC_SEED must be a number:", err)
		os.Exit(2)
	}
	return first + atomic.AddInt64(&asked, 1)<<32
}
