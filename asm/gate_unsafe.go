package asm

// This file uses unsafe to name a Gate by its address to the package that owns
// it, which cannot be imported from here.

import "unsafe"

func gatePointer(b *Block) unsafe.Pointer { return unsafe.Pointer(b) }
