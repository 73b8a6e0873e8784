//go:build unix && !linux

package asm

const mapNoReserve = 0

func smallPages([]byte) {}
