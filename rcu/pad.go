package rcu

// lineSize keeps words that different CPUs write apart. It is twice the cache line
// of amd64, whose prefetcher fetches lines in pairs, and the line of some arm64.
const lineSize = 128

// noCopy lets go vet's copylocks check find copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
