//go:build !((amd64 || arm64) && gc && !purego)

package asm

import "time"

var clockStart = time.Now()

func cycles() uint64        { return uint64(time.Since(clockStart)) }
func cyclesOrdered() uint64 { return cycles() }
func pause()                {}
