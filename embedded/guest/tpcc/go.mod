// Which go-tpc scripts/tpcc takes; go.sum has its hashes, so that Go takes no other.
module tpcc

go 1.18

require github.com/pingcap/go-tpc v1.0.9
