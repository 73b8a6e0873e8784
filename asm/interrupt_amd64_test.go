package asm

var breakpoint = []byte{0xcc} // INT3

// trapSkips is how far behind a breakpoint the program counter is when it was hit.
const trapSkips = 1
