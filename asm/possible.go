package asm

import (
	"errors"
	"strconv"
	"strings"
)

// parsePossible reads the kernel's list of possible CPUs, as in
// /sys/devices/system/cpu/possible: ranges and numbers, separated by commas. It
// returns the highest number plus one: numbers may have holes, and a CPU's
// number, not its rank, is its column.
func parsePossible(list string) (int, error) {
	const maxList, maxCPU = 4096, 1 << 16
	list = strings.TrimSuffix(list, "\n")
	if list == "" || len(list) > maxList {
		return 0, errors.New("asm: list of possible CPUs is empty or too long")
	}
	n := 0
	for part := range strings.SplitSeq(list, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 32)
		hi, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || hi < lo || hi >= maxCPU {
			return 0, errors.New("asm: list of possible CPUs has a bad range " + strconv.Quote(part))
		}
		n = max(n, int(hi)+1)
	}
	return n, nil
}
