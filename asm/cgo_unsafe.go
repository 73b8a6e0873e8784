//go:build linux && !android && (amd64 || arm64) && gc && !purego && !race && !go1.28

package asm

// This file pulls runtime.iscgo with linkname: whether libc started the threads
// of this process and owns their thread pointer. The runtime keeps the name
// for github.com/ebitengine/purego (go.dev/issue/67401); Go 1.26, 1.27 tested.

import _ "unsafe"

//go:linkname isCgo runtime.iscgo
var isCgo bool
