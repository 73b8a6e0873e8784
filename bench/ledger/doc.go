// Package ledger has only a test: it counts the cache lines that each hot operation writes, and those
// that two CPUs both write. It is a package of its own so that the process, all of whose memory it
// compares, is small.
//
//	go -C bench test -v -run Ledger ./ledger
package ledger
