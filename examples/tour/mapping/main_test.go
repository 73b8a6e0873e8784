package main

func Example() {
	main()
	// Output:
	// unmapped: 49 wrong bytes: 0 error: <nil>
}
