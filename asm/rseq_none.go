//go:build !(linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28)

package asm

import (
	"fmt"
	"runtime"
)

// rseqBuilt says whether this build has restartable sequences at all.
const rseqBuilt = false

func rseqStart() error {
	return fmt.Errorf("%w in this build (%s/%s %s; needs linux on amd64 or arm64, no -race, no -tags purego, a Go release it was tested with)",
		ErrUnsupported, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

func rseqInfo() RSEQInfo       { return RSEQInfo{} }
func rseqThread() (fresh bool) { return false }
func rseqColumn() (c int)      { return -1 }
func setRSEQColumns(uint32)    {}

func cpu() int {
	if c, ok := cheapCPU(); ok {
		return c
	}
	return cpuSlow()
}

func blockAdd(b *Block, i int, delta int64) { blockAddSlow(b, i, delta) }
func gateAdd(b *Block, i int, delta int64)  { gateAddSlow(b, i, delta) }

func blockTryLock(b *Block, i int) (*Lock, int) { return blockTryLockSlow(b, i) }

func claim(c *Claims, v int64, other func(*Claims, int64) *int64) *int64 { return other(c, v) }

func blockCompareAndSwap(*Block, int, int, int64, int64) int      { return seqCannot }
func blockSwapTwo(*Block, int, int, int64, int64, int, int64) int { return seqCannot }
func blockPush(*Block, int, int, int64) int                       { return seqCannot }
func blockPop(*Block, int) (int, int64)                           { return seqCannot, 0 }
func blockAddWithin(*Block, int, int64, int64, int64) int         { return seqCannot }

func logWrite(l *Log, event uint32, payload []byte) bool { return logSlow(l, event, payload) }
