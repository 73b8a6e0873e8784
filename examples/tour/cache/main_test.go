package main

func Example() {
	main()
	// Output:
	// A hits 7998 misses 3
}
