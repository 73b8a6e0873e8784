package main

import (
	"fmt"
	"os"
)

func main() {
	dir, err := os.MkdirTemp("", "mapping")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	bad, err := run(dir)
	fmt.Println("unmapped:", unmapped.Load(), "wrong bytes:", bad, "error:", err)
}
