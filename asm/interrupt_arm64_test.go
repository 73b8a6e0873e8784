package asm

var breakpoint = []byte{0x00, 0x00, 0x20, 0xd4} // BRK #0

// trapSkips is how far behind a breakpoint the program counter is when it was hit.
const trapSkips = 0
